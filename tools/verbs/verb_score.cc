#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cache/job/process_memory.h"
#include "index/input/npy_header.h"
#include "storage/array/array_versions.h"
#include "storage/base/bytes_left.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/id_text.h"
#include "tools/cli/pair_input.h"
#include "tools/cli/text.h"
#include "tools/cli/text_output.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

struct ScoreFlags {
  LinkScoreOptions options;
  std::string store;
  std::string pairs;
  bool all_edges = false;
  std::string decoder;
  std::string out;
  std::uint64_t memory_bytes = 0;
};

/// Receives scores as they are computed.
class ScoreOutput {
 public:
  virtual ~ScoreOutput() = default;
  virtual Status Add(std::span<const VertexPair> pairs, std::span<const float> scores) = 0;
  virtual Status Commit() = 0;
};

/// Writes scores as .npy, float32 [m]; m must be known in advance.
class NpyScores final : public ScoreOutput {
 public:
  static Result<std::unique_ptr<ScoreOutput>> Create(const std::string& path, std::uint64_t count) {
    RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    const std::string header = NpyHeaderBytes(DataType::kFloat32, count);
    RHIZOME_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(header))));
    return std::make_unique<NpyScores>(std::move(file), count);
  }
  NpyScores(OutputFile file, std::uint64_t count) : file_(std::move(file)), left_(count) {}

  Status Add(std::span<const VertexPair>, std::span<const float> scores) override {
    if (scores.size() > left_) return Changed();
    left_ -= scores.size();
    return file_.Append(std::as_bytes(scores));
  }
  Status Commit() override { return left_ == 0 ? file_.Commit() : Changed(); }

 private:
  static Status Changed() {
    return Status::InvalidArgument("the file of pairs changed while it was being scored");
  }
  OutputFile file_;
  std::uint64_t left_;
};

/// Writes scores as TSV or CSV: src, dst, the type if there are several, score.
class TextScores final : public ScoreOutput {
 public:
  TextScores(const GraphSnapshot& graph, TextOutput file, TableForm form)
      : graph_(graph), file_(std::move(file)), form_(form) {}
  Status Add(std::span<const VertexPair> pairs, std::span<const float> scores) override {
    const char separator = SeparatorOf(form_);
    std::string line;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      line.clear();
      for (const VertexId end : {pairs[i].src, pairs[i].dst}) {
        RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph_.ExternalIdOf(end));
        RHIZOME_RETURN_IF_ERROR(AppendIdField(id, form_, line));
        line += separator;
      }
      if (types_.size() > 1) line += types_[pairs[i].type] + separator;
      fmt::format_to(std::back_inserter(line), "{}", scores[i]);
      RHIZOME_RETURN_IF_ERROR(file_.Line(line));
    }
    return Status::Ok();
  }
  Status Commit() override { return file_.Commit(); }

 private:
  const GraphSnapshot& graph_;
  const std::vector<std::string> types_ = graph_.edge_types();
  TextOutput file_;
  const TableForm form_;
};

Result<PairInput> OpenInput(const GraphSnapshot& graph, const ScoreFlags& flags) {
  return flags.all_edges ? AllEdges(graph) : OpenPairs(graph, flags.pairs);
}

Result<std::unique_ptr<ScoreOutput>> OpenOutput(const GraphSnapshot& graph, const ScoreFlags& flags,
                                                const PairInput& input, const JobControl& control) {
  if (!flags.out.ends_with(".npy")) {
    RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(flags.out));
    return std::make_unique<TextScores>(graph, std::move(file), TableFormOf(flags.out));
  }
  std::uint64_t count = input.count;
  if (count == 0) {
    // The header of a .npy file contains its length, so the pairs are read twice.
    if (!flags.all_edges && InputStream::IsReadOnce(flags.pairs)) {
      return Fail(
          Status::InvalidArgument("--out .npy needs the number of pairs in advance: give a regular "
                                  "file to --pairs, or a .tsv file to --out"));
    }
    RHIZOME_ASSIGN_OR_RETURN(const PairInput counted, OpenInput(graph, flags));
    RHIZOME_ASSIGN_OR_RETURN(count, CountPairs(counted, control));
  }
  return NpyScores::Create(flags.out, count);
}

Json ScoreReportJson(const LinkScoreReport& report, const ScoreFlags& flags, double seconds) {
  return {{"pairs", report.pairs},
          {"seconds", seconds},
          {"pairs_per_second", seconds > 0 ? static_cast<double>(report.pairs) / seconds : 0.0},
          {"batches", report.batches},
          {"chunk_requests", report.chunk_requests},
          {"chunk_reads", report.chunk_reads},
          {"rows_read", report.rows_read},
          {"bytes_read", report.bytes_read},
          {"read_seconds", report.read_seconds},
          {"score_seconds", report.score_seconds},
          {"peak_memory_bytes", PeakResidentBytes()},
          {"out", flags.out}};
}

std::string DescribeScore(const Json& f) {
  return fmt::format(
      "{} scored in {}, {} per second; {} read\n"
      "wrote {}\n",
      WithCommas(f["pairs"]) + (f["pairs"] == 1 ? " pair" : " pairs"), HumanSeconds(f["seconds"]),
      HumanCount(f["pairs_per_second"]), HumanBytes(f["bytes_read"]), f["out"].get<std::string>());
}

Status CheckFlags(const ScoreFlags& flags) {
  if (flags.all_edges == !flags.pairs.empty())
    return Status::InvalidArgument("give either --pairs F or --all-edges");
  const bool needs_decoder = flags.options.scorer != LinkScorerKind::kDot;
  if (needs_decoder == flags.decoder.empty()) {
    return Status::InvalidArgument(needs_decoder
                                       ? "--scorer distmult and mlp need --decoder F.safetensors"
                                       : "--scorer dot does not use --decoder");
  }
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.options.array));
  return Status::Ok();
}

// Scores pairs: (1) checks the flags and loads librhizome_gnn; (2) opens the graph, and gives the
// remaining memory to the scorer; (3) opens the pairs and the output, counting the pairs if
// necessary; (4) streams scores into the output and commits it; (5) warns if the embeddings may be
// out of date.
Result<Answer> RunScore(const ScoreFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(CheckFlags(flags));
  RHIZOME_RETURN_IF_ERROR(CheckOutputs(session, flags.out));
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const LinkScores* const gnn, LoadLinkScores());
  const std::uint64_t base = StartMemory(session, flags.memory_bytes);
  // Pairs need only ids and rows.
  const TopologyPlace place = flags.all_edges ? TopologyPlace::kMemory : TopologyPlace::kLazy;
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened, OpenGraph(flags.store, session, place));
  LinkScoreOptions options = flags.options;
  options.decoder = flags.decoder;
  if (flags.memory_bytes != 0)
    options.memory_bytes = BytesLeft(flags.memory_bytes, HeldBytes(base));
  const GraphSnapshot& graph = *opened.graph;
  RHIZOME_ASSIGN_OR_RETURN(const PairInput input, OpenInput(graph, flags));
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ScoreOutput> output,
                           OpenOutput(graph, flags, input, session.control));
  const ScoreSink sink = [&](std::span<const VertexPair> pairs, std::span<const float> scores) {
    return output->Add(pairs, scores);
  };
  RHIZOME_ASSIGN_OR_RETURN(const LinkScoreReport report,
                           gnn->Score(graph, options, input.next, sink, session.control));
  RHIZOME_RETURN_IF_ERROR(output->Commit());
  const double seconds = watch.seconds();
  Json fields = ScoreReportJson(report, flags, seconds);
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(flags.options.array));
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, graph, array->entry(), fields));
  return Answer{std::move(fields), IsStandardOutput(flags.out) ? nullptr : DescribeScore, {}};
}

}  // namespace

void AddScoreVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<ScoreFlags>();
  CLI::App* verb = AddVerb(root, session, "score",
                           "Score pairs of vertices, or all edges, by the rows of an array",
                           "printf '0\\t1\\n0\\t2\\n' | rhizome score demo.rz --array embedding "
                           "--pairs - --out scores.tsv",
                           flags, RunScore);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--array", flags->options.array, "Array with embeddings or features")
      ->required()
      ->type_name("NAME");
  verb->add_option("--pairs", flags->pairs,
                   "Pairs to score: TSV or CSV lines of two ids and optionally an edge type, - for "
                   "stdin; or .npy, int64 [m, 2]")
      ->type_name("F");
  verb->add_flag(
      "--all-edges", flags->all_edges,
      "Score all edges, in the order of export --edges; of an undirected graph each pair once");
  AddChoice<LinkScorerKind>(*verb, "--scorer", flags->options.scorer,
                            {{"dot", LinkScorerKind::kDot},
                             {"distmult", LinkScorerKind::kDistMult},
                             {"mlp", LinkScorerKind::kMlp}},
                            "Function that computes a score from two rows");
  verb->add_option("--decoder", flags->decoder,
                   "Weights. distmult: `relations` [types, dim]; mlp: `layers.<k>.weight` and "
                   "`layers.<k>.bias`, applied to the product or the concatenation of the rows")
      ->type_name("F.safetensors");
  verb->add_option(
          "--out", flags->out,
          "Output file: lines src, dst, score (- for standard output), or .npy, float32 [m]")
      ->required()
      ->type_name("F.tsv|F.csv|F.npy");
  AddSize(*verb, "--memory", flags->memory_bytes,
          "Memory limit of the process beyond its size at start; default: 1G for rows and pairs");
  AddThreads(*verb, flags->options.threads);
}

}  // namespace rhizome
