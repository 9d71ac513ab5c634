#include "tools/bench/gnn/bench_infer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>

#include "cache/layout/pass_cost.h"
#include "tools/bench/gnn/infer_comparison.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMinChunks = 1024;
/// A memory cache of chunks. `whole_blocks`: the cached chunks of a block are served before others
/// are read.
struct ChunkCache {
  const char* name;
  PolicyKind policy;
  bool whole_blocks;
};
constexpr std::array<ChunkCache, 4> kCaches = {{{"fifo", PolicyKind::kFifo, false},
                                                {"lru", PolicyKind::kLru, false},
                                                {"cached-first", PolicyKind::kFifo, true},
                                                {"belady", PolicyKind::kBelady, false}}};

constexpr LayoutRule kRandom{RowRule::kRandom, TargetOrder::kRandom};
constexpr LayoutRule kNatural{RowRule::kNatural, TargetOrder::kNatural};

/// Returns the rows of a partition, without isolated vertices. Any order that keeps isolated
/// vertices together reads each of their chunks once, while a random order mixes them with the
/// others and would look worse than it is.
Result<std::vector<Row>> ConnectedTargets(const GraphSnapshot& graph, PartitionId partition) {
  std::vector<Row> connected;
  for (const Row row : TargetsOf(graph, partition)) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree,
                             graph.Degree(*graph.VertexAt(row), graph.info().directions));
    if (degree > 0) connected.push_back(row);
  }
  return connected;
}

/// Sums over all workers.
struct Sums {
  std::uint64_t requests = 0;
  std::array<std::uint64_t, kCaches.size()> reads{};
};

struct Table {
  std::vector<LayoutRule> rules;
  std::vector<Sums> sums;
  Sums chosen;           ///< with the layout that each worker chose
  Sums chosen_by_reads;  ///< with the layout for which Belady's cache reads the fewest chunks
  std::uint64_t targets = 0;
  std::uint64_t rows = 0;
  std::uint64_t chunks = 0;
  std::uint64_t blocks = 0;
  std::uint64_t edges = 0;
};

Result<Sums> Count(const Trace& blocks, std::uint64_t chunks, double cache_share) {
  const auto frames = static_cast<std::uint64_t>(cache_share * static_cast<double>(chunks));
  const Trace arriving = InArrivalOrder(blocks);
  Sums sums{.requests = blocks.keys.size(), .reads = {}};
  for (std::size_t c = 0; c < kCaches.size(); ++c) {
    RHIZOME_ASSIGN_OR_RETURN(sums.reads[c], CountReads(kCaches[c].whole_blocks ? blocks : arriving,
                                                       chunks, kCaches[c].policy, frames));
  }
  return sums;
}

void Add(Sums& to, const Sums& more) {
  to.requests += more.requests;
  for (std::size_t c = 0; c < kCaches.size(); ++c) to.reads[c] += more.reads[c];
}

Status CountWorker(const PassLists& lists, const PassShape& shape, const BenchInferOptions& options,
                   Table& table) {
  const std::uint64_t chunks = ChunksOf(lists.rows.size(), shape.chunk_rows);
  std::optional<Sums> best;
  std::optional<Sums> best_by_reads;
  for (std::size_t r = 0; r < table.rules.size(); ++r) {
    const PassLayout layout = LayOut(lists, table.rules[r], shape.block_rows, options.graph.seed);
    RHIZOME_ASSIGN_OR_RETURN(const Sums sums,
                             Count(ChunkTrace(lists, layout, shape), chunks, options.cache_share));
    Add(table.sums[r], sums);
    if (table.rules[r] == kRandom) continue;
    if (!best || sums.requests < best->requests) best = sums;
    if (!best_by_reads || sums.reads.back() < best_by_reads->reads.back()) best_by_reads = sums;
  }
  Add(table.chosen, *best);
  Add(table.chosen_by_reads, *best_by_reads);
  table.rows += lists.rows.size();
  table.chunks += chunks;
  table.blocks += ChunksOf(lists.targets.size(), shape.block_rows);
  table.edges += lists.neighbors.size();
  return Status::Ok();
}

double Over(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

Json RowJson(const std::string& name, const Sums& sums, const Sums& random, const Sums& natural) {
  Json json = {{"layout", name},
               {"chunk_requests", sums.requests},
               {"of_random", Over(sums.requests, random.requests)},
               {"of_natural", Over(sums.requests, natural.requests)}};
  for (std::size_t c = 0; c < kCaches.size(); ++c) {
    json[kCaches[c].name] = sums.reads[c];
  }
  json["belady_of_fifo"] = Over(sums.reads.back(), sums.reads.front());
  return json;
}

const Sums& SumsOf(const Table& table, const LayoutRule& rule) {
  const auto found = std::find(table.rules.begin(), table.rules.end(), rule);
  return table.sums[static_cast<std::size_t>(found - table.rules.begin())];
}

Result<Json> CountPass(const BenchInferOptions& options, const GraphSnapshot& graph,
                       const JobControl& control) {
  const PassShape shape{.block_rows = options.block_rows,
                        .chunk_rows = BenchChunkRows(options, graph.vertex_count())};
  Table table;
  table.rules = CandidateLayouts();
  table.rules.push_back(kRandom);
  table.sums.resize(table.rules.size());
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "count", .done = p, .total = graph.partition_count()}));
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<Row> targets,
                             ConnectedTargets(graph, static_cast<PartitionId>(p)));
    table.targets += targets.size();
    RHIZOME_ASSIGN_OR_RETURN(const PassLists lists,
                             DrawPassLists(graph, targets,
                                           {.fanout = options.fanout,
                                            .seed = options.graph.seed,
                                            .threads = options.graph.threads},
                                           control));
    RHIZOME_RETURN_IF_ERROR(CountWorker(lists, shape, options, table));
  }
  Json json = Json::object();
  json["partitions"] = graph.partition_count();
  json["fanout"] = options.fanout == kAllNeighbors ? Json("all") : Json(options.fanout);
  json["block_rows"] = shape.block_rows;
  json["chunk_rows"] = shape.chunk_rows;
  json["targets"] = table.targets;
  json["target_chunks"] = ChunksOf(table.targets, shape.chunk_rows);
  json["worker_chunks"] = table.chunks;
  json["worker_rows"] = table.rows;
  json["blocks"] = table.blocks;
  json["edges_read"] = table.edges;
  json["cache_share"] = options.cache_share;
  const Sums& of_random = SumsOf(table, kRandom);
  const Sums& of_natural = SumsOf(table, kNatural);
  json["figure"] = Over(table.chosen.requests, of_random.requests);
  json["unit"] = "chunk requests of the chosen layout, of those with random ids";
  json["layouts"] = Json::array();
  for (std::size_t r = 0; r < table.rules.size(); ++r) {
    json["layouts"].push_back(
        RowJson(LayoutName(table.rules[r]), table.sums[r], of_random, of_natural));
  }
  json["layouts"].push_back(
      RowJson("chosen by reads", table.chosen_by_reads, of_random, of_natural));
  json["layouts"].push_back(RowJson("chosen", table.chosen, of_random, of_natural));
  return json;
}

bool Has(const BenchInferOptions& options, std::string_view part) {
  return std::find(options.parts.begin(), options.parts.end(), part) != options.parts.end();
}

/// Runs the parts that need more than the graph.
Status RunInferContest(const BenchInferOptions& options, InferComparison& contest,
                       const JobControl& control, Json& json) {
  struct Part {
    const char* name;
    Status (*run)(const BenchInferOptions&, InferComparison&, const JobControl&, Json&);
  };
  constexpr std::array<Part, 4> kParts = {{{"time", BenchInferTime},
                                           {"resume", BenchInferResume},
                                           {"codecs", BenchInferCodecs},
                                           {"far", BenchInferFar}}};
  for (const Part& part : kParts)
    if (Has(options, part.name)) RHIZOME_RETURN_IF_ERROR(part.run(options, contest, control, json));
  return Status::Ok();
}

}  // namespace

std::uint64_t BenchChunkRows(const BenchInferOptions& options, std::uint64_t row_count) {
  if (options.chunk_rows != 0) return options.chunk_rows;
  return std::bit_floor(std::max<std::uint64_t>(row_count / kMinChunks, 1));
}

std::string PartPlot(const std::string& path, const std::string& part) {
  const std::size_t dot = path.rfind('.');
  return path.substr(0, dot) + "-" + part + path.substr(dot);
}

// Runs the requested parts: opens the graph, or an InferComparison if a part runs inferences, runs
// those parts (RunInferContest), and counts the reads of a pass (CountPass).
Result<Json> BenchInfer(const BenchInferOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  const bool counts_only = options.parts == std::vector<std::string>{"counts"};
  BenchInferOptions made = options;
  if (counts_only) made.graph.dim = 0;
  BenchGraph opened;
  std::unique_ptr<InferComparison> contest;
  const GraphSnapshot* graph = nullptr;
  if (counts_only) {
    RHIZOME_ASSIGN_OR_RETURN(opened, OpenBenchGraph(made.graph, control));
    graph = opened.graph.get();
  } else {
    RHIZOME_ASSIGN_OR_RETURN(contest, InferComparison::Create(made, control));
    graph = &contest->graph();
  }
  Json json = {{"workload", "layerwise inference"}};
  json.update(DescribeGraph(options.graph, *graph));
  if (contest) RHIZOME_RETURN_IF_ERROR(RunInferContest(made, *contest, control, json));
  if (Has(options, "counts")) {
    RHIZOME_ASSIGN_OR_RETURN(Json counts, CountPass(made, *graph, control));
    if (counts_only)
      json.update(counts);
    else
      json["counts"] = std::move(counts);
  }
  json["machine"] = DescribeMachine(graph->store().path());
  return json;
}

}  // namespace rhizome
