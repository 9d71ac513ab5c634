#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "cache/job/process_memory.h"
#include "index/input/npy_header.h"
#include "index/links/link_file.h"
#include "storage/array/array_versions.h"
#include "storage/base/bytes_left.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/decoder_flags.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/id_text.h"
#include "tools/cli/link_memory.h"
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
  std::uint64_t top = 0;
  std::string of;
  bool all = false;
  std::string type;
  bool drop_known = false;
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

/// All live vertices.
VertexSource AllVertices(const GraphSnapshot& graph) {
  return [&graph, next = VertexId{0}](std::span<VertexId> out) mutable -> Result<std::size_t> {
    std::size_t count = 0;
    for (; count < out.size() && static_cast<std::uint64_t>(next) < graph.vertex_count(); ++next)
      if (!graph.IsDeleted(next)) out[count++] = next;
    return count;
  };
}

Result<std::optional<TypeId>> TypeOfLinks(const GraphSnapshot& graph, const std::string& name) {
  if (name.empty()) return std::optional<TypeId>();
  const std::vector<std::string> types = graph.edge_types();
  const auto found = std::find(types.begin(), types.end(), name);
  if (found == types.end())
    return Fail(Status::NotFound(fmt::format("the store has no edge type '{}'", name)));
  return std::optional<TypeId>(static_cast<TypeId>(found - types.begin()));
}

Json TopReportJson(const TopLinksReport& report, const ScoreFlags& flags, double seconds) {
  return {
      {"vertices", report.vertices},
      {"links", report.links},
      {"seconds", seconds},
      {"vertices_per_second", seconds > 0 ? static_cast<double>(report.vertices) / seconds : 0.0},
      {"passes", report.passes},
      {"bytes_read", report.bytes_read},
      {"read_seconds", report.read_seconds},
      {"peak_memory_bytes", PeakResidentBytes()},
      {"out", flags.out}};
}

std::string DescribeTop(const Json& f) {
  return fmt::format(
      "{} of {} vertices in {}, {} vertices per second; {} read\n"
      "wrote {}\n",
      Plural(f["links"], "link"), WithCommas(f["vertices"]), HumanSeconds(f["seconds"]),
      HumanCount(f["vertices_per_second"]), HumanBytes(f["bytes_read"]),
      f["out"].get<std::string>());
}

Status CheckFlags(const ScoreFlags& flags) {
  if (flags.top != 0) {
    if (flags.all_edges || !flags.pairs.empty())
      return Status::InvalidArgument(
          "--top searches links; it does not take --pairs or --all-edges");
    if (flags.all == !flags.of.empty())
      return Status::InvalidArgument("--top needs the vertices: give either --of F or --all");
    if (flags.out.ends_with(".npy"))
      return Status::InvalidArgument("--top writes ids: give a .tsv or .csv file to --out");
  } else if (flags.all || flags.drop_known || !flags.of.empty() || !flags.type.empty()) {
    return Status::InvalidArgument("--of, --all, --type and --known are options of --top K");
  } else if (flags.all_edges == !flags.pairs.empty()) {
    return Status::InvalidArgument("give either --pairs F, --all-edges or --top K");
  }
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.options.array));
  return Status::Ok();
}

// Searches links: as RunScore, for each vertex of a file, or for all.
Result<Answer> RunTop(const LinkScores& gnn, const OpenedGraph& opened, const ScoreFlags& flags,
                      const LinkMemory& memory, Session& session) {
  const Stopwatch watch;
  const GraphSnapshot& graph = *opened.graph;
  TopLinksOptions options{.array = flags.options.array,
                          .scorer = flags.options.scorer,
                          .decoder = flags.decoder,
                          .count = flags.top,
                          .drop_known = flags.drop_known,
                          .memory_bytes = memory.OfJob(flags.options.memory_bytes),
                          .threads = flags.options.threads};
  RHIZOME_ASSIGN_OR_RETURN(options.type, TypeOfLinks(graph, flags.type));
  VertexSource source;
  if (flags.all) {
    source = AllVertices(graph);
  } else {
    RHIZOME_ASSIGN_OR_RETURN(VertexFile file, OpenVertices(graph, flags.of));
    source = std::move(file.next);
  }
  RHIZOME_ASSIGN_OR_RETURN(TextOutput file, TextOutput::Create(flags.out));
  TextScores output(graph, std::move(file), TableFormOf(flags.out));
  const ScoreSink sink = [&](std::span<const VertexPair> pairs, std::span<const float> scores) {
    return output.Add(pairs, scores);
  };
  const Result<TopLinksReport> report = gnn.Top(graph, options, source, sink, session.control);
  if (!report) return Fail(memory.Explain(report.error()));
  RHIZOME_RETURN_IF_ERROR(output.Commit());
  Json fields = TopReportJson(*report, flags, watch.seconds());
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(flags.options.array));
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, graph, array->entry(), fields));
  return Answer{std::move(fields), IsStandardOutput(flags.out) ? nullptr : DescribeTop, {}};
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
  if (flags.top != 0) {
    return RunTop(*gnn, opened, flags, LinkMemory::Of(flags.memory_bytes, base), session);
  }
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
  CLI::App* verb =
      AddVerb(root, session, "score",
              "Score pairs of vertices, or all edges, or find the best links of vertices",
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
  verb->add_option("--top", flags->top,
                   "Find the K destinations with the best scores for each vertex of --of or --all")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}))
      ->type_name("K");
  verb->add_option("--of", flags->of, "With --top: vertices, a file of ids; - for stdin")
      ->type_name("F");
  verb->add_flag("--all", flags->all, "With --top: all vertices");
  verb->add_option("--type", flags->type,
                   "With --top: edge type of the links, which determines the candidates")
      ->type_name("NAME");
  AddChoice<bool>(*verb, "--known", flags->drop_known, {{"keep", false}, {"drop", true}},
                  "With --top: whether destinations of edges of the store are candidates");
  AddDecoder(*verb, flags->options.scorer, flags->decoder);
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
