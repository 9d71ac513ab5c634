#include <fmt/format.h>

#include <utility>

#include "index/links/link_file.h"
#include "storage/array/array_versions.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/decoder_flags.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/link_memory.h"
#include "tools/cli/text.h"
#include "tools/verbs/evaluation_report.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

namespace rhizome {
namespace {

struct EvaluateFlags {
  LinkEvaluationOptions options;
  std::string store;
  std::string decoder;
  std::string test;
  std::string valid;
  std::vector<std::string> filter;
  std::string negatives;
  std::string candidates = "type";
  LinkFileOptions files;
  std::uint64_t memory_bytes = 0;
};

/// Sets the candidates of the options, or opens the files that list them.
Status TakeCandidates(const EvaluateFlags& flags, const GraphSnapshot& graph,
                      LinkEvaluationOptions& options, LinkEvaluationEdges& edges) {
  if (flags.candidates == "type") return Status::Ok();
  if (flags.candidates == "all") {
    options.candidates = LinkCandidates::kAll;
    return Status::Ok();
  }
  const std::vector<std::string> files = SplitList(flags.candidates, ',');
  if (files.empty() || files.size() > 2) {
    return Status::InvalidArgument(
        "--candidates must be type, all, a file for destinations, or one for destinations and one "
        "for sources, separated by a comma");
  }
  RHIZOME_ASSIGN_OR_RETURN(VertexFile dst, OpenVertices(graph, files[0]));
  edges.given = {.per_edge = dst.per_line, .dst = std::move(dst.next), .src = {}};
  if (files.size() == 1) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(VertexFile src, OpenVertices(graph, files[1]));
  edges.given.src = std::move(src.next);
  if (src.per_line == dst.per_line) return Status::Ok();
  return Status::InvalidArgument(fmt::format("{} has {} candidates for each edge, but {} has {}",
                                             files[0], dst.per_line, files[1], src.per_line));
}

std::string FigureText(const Json& value) { return fmt::format("{:.4f}", value.get<double>()); }

std::string DescribeEvaluation(const Json& f) {
  std::string text = fmt::format("{} in {}, {} ranks per second\n", Plural(f["edges"], "test edge"),
                                 HumanSeconds(f["seconds"]), HumanCount(f["queries_per_second"]));
  text += RanksTable(f);
  if (f["leaked_edges"] != 0)
    text += fmt::format("{} in the store\n", Plural(f["leaked_edges"], "test edge"));
  if (f["bad_lines"] != 0) text += fmt::format("{} skipped\n", Plural(f["bad_lines"], "bad line"));
  if (f.contains("negatives")) {
    const Json& negatives = f["negatives"];
    text += fmt::format(
        "against {}: AUC {}, average precision {}, Hits@50 {}\n",
        Plural(negatives["negatives"], "negative"), FigureText(negatives["roc_auc"]),
        FigureText(negatives["average_precision"]), FigureText(negatives["ogb_hits@50"]));
  }
  return text;
}

// Evaluates: (1) loads librhizome_gnn and opens the graph; (2) opens the files of edges and of
// candidates; (3) ranks, within the memory that is left; (4) warns if the rows may be out of date.
Result<Answer> RunEvaluate(const EvaluateFlags& flags, Session& session) {
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(flags.options.array));
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const LinkScores* const gnn, LoadLinkScores());
  const std::uint64_t base = StartMemory(session, flags.memory_bytes);
  // Only the lists of test edges are read.
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened,
                           OpenGraph(flags.store, session, TopologyPlace::kLazy));
  const GraphSnapshot& graph = *opened.graph;
  LinkEvaluationOptions options = flags.options;
  options.decoder = flags.decoder;
  const LinkFiles files(graph, flags.files);
  LinkEvaluationEdges edges;
  RHIZOME_ASSIGN_OR_RETURN(edges.test, files.Open(flags.test));
  std::vector<std::string> known = flags.filter;
  if (!flags.valid.empty()) known.insert(known.begin(), flags.valid);
  for (const std::string& path : known) {
    RHIZOME_ASSIGN_OR_RETURN(PairSource source, files.Open(path));
    edges.known.push_back(std::move(source));
  }
  if (!flags.negatives.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(edges.negatives, files.Open(flags.negatives));
  }
  RHIZOME_RETURN_IF_ERROR(TakeCandidates(flags, graph, options, edges));
  const LinkMemory memory = LinkMemory::Of(flags.memory_bytes, base);
  options.memory_bytes = memory.OfJob(options.memory_bytes);
  const Result<LinkEvaluation> found = gnn->Evaluate(graph, options, edges, session.control);
  if (!found) return Fail(memory.Explain(found.error()));
  Json fields = EvaluationJson(*found, watch.seconds());
  fields["bad_lines"] = files.bad_lines();
  fields["start_memory_bytes"] = base;
  RHIZOME_ASSIGN_OR_RETURN(const auto array, opened.store->OpenArray(flags.options.array));
  RHIZOME_RETURN_IF_ERROR(WarnIfStale(session, graph, array->entry(), fields));
  return Answer{std::move(fields), DescribeEvaluation, {}};
}

}  // namespace

void AddEvaluateVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* verb = AddVerb(
      root, session, "evaluate",
      "Rank the true ends of test edges among all vertices, by the rows of an array",
      "printf '0\\t9\\n3\\t7\\n' > test.tsv; rhizome evaluate demo.rz --array embedding --test "
      "test.tsv --allow-leaked",
      flags, RunEvaluate);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("--array", flags->options.array, "Array with embeddings or features")
      ->required()
      ->type_name("NAME");
  AddDecoder(*verb, flags->options.scorer, flags->decoder);
  verb->add_option("--test", flags->test,
                   "Edges to rank: lines of two ids and an edge type, as ingestion reads them; or "
                   ".npy, int64 [m, 2] or [m, 3] with numbers of edge types")
      ->required()
      ->type_name("F");
  verb->add_option("--valid", flags->valid, "Edges of the validation set, which are known")
      ->type_name("F");
  verb->add_option("--filter", flags->filter, "More known edges; may be repeated")
      ->allow_extra_args(false)
      ->type_name("F");
  verb->add_option("--candidates", flags->candidates,
                   "Vertices that are ranked: of the true end's type, all, or for each test edge "
                   "the ids in a row of a file: for destinations, and after a comma for sources")
      ->type_name("type|all|F[,F]")
      ->capture_default_str();
  verb->add_option("--negatives", flags->negatives,
                   "Edges that do not exist: also report AUC, average precision and OGB's Hits")
      ->type_name("F");
  AddList(*verb, "--columns", flags->files.columns,
          "Columns of the files, such as src,type,dst; - skips one; default: found");
  verb->add_option("--max-bad-lines", flags->files.max_bad_lines,
                   "Number of lines with unknown ids or edge types that are skipped")
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--allow-leaked", flags->options.allow_leaked,
                 "Accept test edges that are in the store");
  verb->add_flag("--allow-stale", flags->options.allow_stale,
                 "Accept an array with rows that are missing or out of date");
  AddSize(*verb, "--memory", flags->memory_bytes,
          "Memory limit of the process beyond its size at start; default: 1G for edges and rows");
  AddThreads(*verb, flags->options.threads);
}

}  // namespace rhizome
