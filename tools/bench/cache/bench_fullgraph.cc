#include "tools/bench/cache/bench_fullgraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "cache/feed/row_degrees.h"
#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/gather_reads.h"
#include "cache/full_graph/pass_sequence.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"

namespace rhizome {
namespace {

/// Numbers of blocks that a pass may have.
constexpr std::uint32_t kBlockCounts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

/// Counts of chunks that a pass over all rows requests, by its number of blocks. All arrays of the
/// bench have equal chunks, and the graph is symmetric, so that each count is valid for every
/// layer, forward and backward.
class GatherCounts {
 public:
  GatherCounts(const GraphSnapshot& graph, const BenchFullGraphOptions& options,
               std::vector<std::uint32_t> degrees, const JobControl& control)
      : graph_(graph), options_(options), degrees_(std::move(degrees)), control_(control) {}

  Result<GatherReads> Count(std::uint32_t blocks) {
    const auto known = counts_.find(blocks);
    if (known != counts_.end()) return known->second;
    const std::uint64_t rows = graph_.vertex_count();
    const BlockPlannerOptions planner{.draw = {.threads = options_.graph.threads},
                                      .source_chunk_rows = options_.chunk_rows,
                                      .stage_rows = options_.stage_rows,
                                      .degrees = degrees_};
    const std::vector<bool> none_done((rows + options_.chunk_rows - 1) / options_.chunk_rows,
                                      false);
    const std::vector<Block> cut =
        MakeBlocks(rows, options_.chunk_rows, (rows + blocks - 1) / blocks, none_done);
    RHIZOME_ASSIGN_OR_RETURN(GatherReads reads, CountGather(graph_, planner, cut, control_));
    return counts_.emplace(blocks, std::move(reads)).first->second;
  }

 private:
  const GraphSnapshot& graph_;
  const BenchFullGraphOptions& options_;
  std::vector<std::uint32_t> degrees_;
  const JobControl& control_;
  std::map<std::uint32_t, GatherReads> counts_;
};

/// Builds the sequence of passes of an epoch of a GCN that aggregates before it multiplies.
class GcnSequence {
 public:
  GcnSequence(std::uint64_t rows, const BenchFullGraphOptions& options, GatherCounts& counts)
      : rows_(rows), options_(options) {
    sequence_.gather = [&counts](std::uint32_t, std::uint32_t blocks) {
      return counts.Count(blocks);
    };
  }

  PassSequence Make(std::uint32_t layers) {
    std::vector<ArrayId> hidden = {Add("x", options_.features, /*stored=*/true)};
    std::vector<ArrayId> sums = {0};
    for (std::uint32_t k = 1; k <= layers; ++k) {
      const std::uint32_t width = k == 1 ? options_.features : options_.hidden;
      sums.push_back(Add(fmt::format("s{}", k), width));
      hidden.push_back(Add(fmt::format("h{}", k), options_.hidden));
      sequence_.passes.push_back({.name = fmt::format("forward {}", k),
                                  .way = Gather(hidden[k - 1], width),
                                  .writes = {sums[k], hidden[k]}});
    }
    ArrayId gradient = Add(fmt::format("dh{}", layers), options_.hidden);
    sequence_.passes.push_back(
        {.name = "loss", .way = {.reads = {{.array = hidden[layers]}}}, .writes = {gradient}});
    for (std::uint32_t k = layers; k > 0; --k) gradient = AddBackward(k, gradient, hidden, sums);
    return std::move(sequence_);
  }

  /// Returns the bytes written by the forward pass, which is what training in memory would hold.
  std::uint64_t ActivationBytes(std::uint32_t layers) const {
    const std::uint64_t columns =
        options_.features + std::uint64_t{options_.hidden} * (2 * layers - 1);
    return rows_ * columns * sizeof(float);
  }

 private:
  ArrayId Add(std::string name, std::uint64_t columns, bool stored = false) {
    sequence_.arrays.push_back({.name = std::move(name),
                                .rows = rows_,
                                .row_bytes = columns * sizeof(float),
                                .chunk_rows = options_.chunk_rows,
                                .stored = stored});
    return static_cast<ArrayId>(sequence_.arrays.size() - 1);
  }

  PassMethod Gather(ArrayId array, std::uint64_t columns) const {
    PassMethod way{.reads = {{.array = array, .gather = 0}}, .choices = {}};
    for (const std::uint32_t blocks : kBlockCounts) {
      const std::uint64_t block_rows = RoundUpToTiles((rows_ + blocks - 1) / blocks);
      way.choices.push_back(
          {.blocks = blocks,
           .memory_bytes = std::min(block_rows, rows_) * columns * sizeof(float)});
    }
    return way;
  }

  /// Adds the backward pass of a layer: the gradients of its sums and weights, then of its input,
  /// and returns the latter.
  ArrayId AddBackward(std::uint32_t k, ArrayId gradient, const std::vector<ArrayId>& hidden,
                      const std::vector<ArrayId>& sums) {
    const std::uint32_t width = k == 1 ? options_.features : options_.hidden;
    SpillPass dense{.name = fmt::format("gradient {}", k), .sums = sums[k]};
    dense.way.reads = {{.array = gradient}, {.array = hidden[k]}, {.array = sums[k]}};
    dense.recompute = Gather(hidden[k - 1], width);
    dense.recompute.reads.push_back({.array = gradient});
    dense.recompute.reads.push_back({.array = hidden[k]});
    if (k == 1) {
      sequence_.passes.push_back(std::move(dense));
      return gradient;
    }
    const ArrayId of_sums = Add(fmt::format("ds{}", k), width);
    const ArrayId of_rows = Add(fmt::format("dh{}", k - 1), width);
    dense.writes = {of_sums};
    sequence_.passes.push_back(std::move(dense));
    sequence_.passes.push_back({.name = fmt::format("backward {}", k),
                                .way = Gather(of_sums, width),
                                .writes = {of_rows}});
    return of_rows;
  }

  std::uint64_t rows_;
  const BenchFullGraphOptions& options_;
  PassSequence sequence_;
};

/// Parses a share such as "1/4" or "0.25".
std::optional<double> ParseLimit(const std::string& text) {
  double over = 0;
  double under = 1;
  char slash = 0;
  std::istringstream in(text);
  if (!(in >> over) || (in >> slash && (slash != '/' || !(in >> under)))) return std::nullopt;
  if (!in.eof() && in.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
  const double limit = over / under;
  return limit > 0 && limit <= 16 ? std::optional(limit) : std::nullopt;
}

Json RowOf(const FullGraphPlan& plan, std::uint32_t layers, const std::string& limit,
           double seconds) {
  const auto ratio = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) /
           static_cast<double>(std::max<std::uint64_t>(plan.bytes(), 1));
  };
  std::uint32_t recomputed = 0;
  for (const FullGraphPlan::Pass& pass : plan.passes)
    recomputed += pass.sums == FullGraphPlan::Sums::kRecomputed ? 1 : 0;
  Json row = {
      {"layers", layers},
      {"limit", limit},
      {"memory_bytes", plan.capacity_bytes},
      {"chosen", SpillName(plan.spill)},
      {"bytes", plan.bytes()},
      {"optimal", plan.optimal ? Json(true) : Json("bound")},
      {"lower_bound_bytes", plan.lower_bound_bytes},
      {"over_bound", static_cast<double>(plan.bytes()) /
                         static_cast<double>(std::max<std::uint64_t>(plan.lower_bound_bytes, 1))},
      {"sums_recomputed", recomputed},
      {"plan_seconds", seconds}};
  for (const char* const name :
       {"none", "lru", "lru-live", "belady", "dp", "dp-tensor", "recompute"}) {
    const auto found =
        std::find_if(plan.policies.begin(), plan.policies.end(),
                     [&](const FullGraphPlan::Contestant& policy) { return policy.name == name; });
    row[name] = found == plan.policies.end() ? Json() : Json(ratio(found->bytes()));
  }
  return row;
}

std::string FullGraphPlotScript(const BenchFullGraphOptions& options, const Json& results) {
  const char* const policies[] = {"none", "lru", "lru-live", "belady", "recompute"};
  std::string script =
      PlotHead(options.plot, 1000, 380 * static_cast<int>((options.limits.size() + 1) / 2));
  script += "set datafile missing 'null'\n";
  for (std::size_t l = 0; l < options.limits.size(); ++l) {
    script += fmt::format("$d{} << EOD\n", l);
    for (const Json& row : results) {
      if (row["limit"] != options.limits[l]) continue;
      script += row["layers"].dump();
      for (const char* const policy : policies) script += fmt::format(" {}", row[policy].dump());
      script += fmt::format(" {}\n", 1 / row["over_bound"].get<double>());
    }
    script += "EOD\n";
  }
  script += fmt::format(
      "set multiplot layout {},2\n"
      "set xlabel 'layers'\n"
      "set grid\n"
      "set yrange [0:*]\n"
      "set ylabel 'bytes relative to the plan'\n"
      "set key top left\n",
      (options.limits.size() + 1) / 2);
  for (std::size_t l = 0; l < options.limits.size(); ++l) {
    script += fmt::format("set title 'memory: {} of the activations'\nplot ", options.limits[l]);
    for (std::size_t p = 0; p < std::size(policies); ++p)
      script += fmt::format("$d{} using 1:{} with linespoints title '{}', ", l, p + 2, policies[p]);
    script +=
        fmt::format("$d{} using 1:{} with lines title 'lower bound'\n", l, std::size(policies) + 2);
  }
  return script + "unset multiplot\n";
}

}  // namespace

// Plans full-graph training: for each number of layers, builds the sequence of passes; for each
// memory limit, plans which arrays to spill (PlanFullGraph) and records the bytes of every policy.
// Draws the plot, if requested.
Result<Json> BenchFullGraph(const BenchFullGraphOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  for (const std::string& limit : options.limits) {
    if (!ParseLimit(limit)) {
      return Fail(Status::InvalidArgument(
          "--limits: '" + limit + "' is not a fraction of the activations, such as 1/4 or 0.25"));
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph graph, OpenBenchGraph(options.graph, control));
  RHIZOME_ASSIGN_OR_RETURN(std::vector<std::uint32_t> degrees,
                           DegreesOfRows(*graph.graph, Direction::kIn));
  GatherCounts counts(*graph.graph, options, std::move(degrees), control);
  Json results = Json::array();
  for (const std::uint32_t layers : options.layers) {
    GcnSequence maker(graph.graph->vertex_count(), options, counts);
    const PassSequence sequence = maker.Make(layers);
    for (const std::string& limit : options.limits) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      const auto memory = static_cast<std::uint64_t>(
          static_cast<double>(maker.ActivationBytes(layers)) * *ParseLimit(limit));
      const Stopwatch watch;
      RHIZOME_ASSIGN_OR_RETURN(const FullGraphPlan plan,
                               PlanFullGraph(sequence, memory, {.max_states = options.max_states}));
      results.push_back(RowOf(plan, layers, limit, watch.seconds()));
    }
  }
  if (!options.plot.empty()) {
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, FullGraphPlotScript(options, results)));
  }
  Json fields = {{"workload", "fullgraph"},
                 {"features", options.features},
                 {"hidden", options.hidden},
                 {"chunk_rows", options.chunk_rows},
                 {"counted",
                  "bytes read and written in one epoch of a GCN that aggregates first; "
                  "policies as multiples of the chosen plan's"}};
  fields.update(DescribeGraph(options.graph, *graph.graph));
  fields["results"] = std::move(results);
  if (!options.plot.empty()) fields["plot"] = options.plot;
  return fields;
}

}  // namespace rhizome
