#include "tools/bench/cache/bench_ranges.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "cache/kernels/aggregate.h"
#include "cache/kernels/simd.h"
#include "cache/layout/pass_lists.h"
#include "cache/ranges/cost_model.h"
#include "cache/ranges/prediction_error.h"
#include "cache/ranges/range_cut.h"
#include "cache/ranges/range_features.h"
#include "storage/io/io_queue.h"
#include "tools/bench/harness/bench_common.h"
#include "tools/bench/harness/gnuplot.h"

namespace rhizome {
namespace {

double ThreadSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A graph in memory, with the features of its ranges and with rows to sum.
class RangesGraph {
 public:
  RangesGraph(std::string name, PassLists lists, std::uint32_t columns)
      : name_(std::move(name)), columns_(columns), features_({.columns = columns}) {
    for (std::size_t t = 0; t < lists.targets.size(); ++t) {
      const auto begin = lists.neighbors.begin() + static_cast<std::ptrdiff_t>(lists.offsets[t]);
      const auto end = lists.neighbors.begin() + static_cast<std::ptrdiff_t>(lists.offsets[t + 1]);
      std::sort(begin, end);
      features_.Add(std::span(begin, end));
      csr_.offsets.push_back(static_cast<std::uint32_t>(lists.offsets[t + 1]));
    }
    csr_.neighbors = std::move(lists.neighbors);
  }

  /// Allocates memory for rows and sums as passes do: in huge pages, if the system supports them.
  Status TakeRows() {
    const std::size_t floats = vertices() * columns_;
    for (AlignedBuffer* const buffer : {&rows_, &sums_}) {
      RHIZOME_ASSIGN_OR_RETURN(*buffer, AlignedBuffer::Allocate(floats * sizeof(float)));
      std::fill_n(reinterpret_cast<float*>(buffer->bytes().data()), floats, 1.0F);
    }
    return Status::Ok();
  }

  const std::string& name() const { return name_; }
  std::size_t vertices() const { return csr_.offsets.size() - 1; }
  std::size_t edges() const { return csr_.neighbors.size(); }
  FeatureVector FeaturesOf(std::size_t begin, std::size_t end) const {
    return features_.Of(begin, end);
  }

  /// Returns the CPU seconds of each range, the median of `rounds`.
  std::vector<double> Measure(const std::vector<std::size_t>& ends, std::uint32_t rounds) {
    std::vector<std::vector<double>> seconds(ends.size() - 1);
    const RowsView rows =
        RowsView::Floats(reinterpret_cast<const float*>(rows_.bytes().data()), columns_);
    auto* const sums = reinterpret_cast<float*>(sums_.bytes().data());
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        const double start = ThreadSeconds();
        AggregateRows(csr_.view(), {}, rows, ends[i], ends[i + 1], sums);
        seconds[i].push_back(ThreadSeconds() - start);
      }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_range : seconds) medians.push_back(Median(std::move(of_range)));
    return medians;
  }

  std::vector<std::size_t> CutByVertices(std::size_t parts) const {
    return CutByCost(vertices(), parts, [](std::size_t begin, std::size_t end) {
      return static_cast<double>(end - begin);
    });
  }
  std::vector<std::size_t> CutByEdges(std::size_t parts) const {
    return CutByCost(vertices(), parts, [&](std::size_t begin, std::size_t end) {
      return static_cast<double>(csr_.offsets[end] - csr_.offsets[begin]);
    });
  }
  /// Returns the cost predicted for the most expensive vertex, a lower bound of any range that
  /// contains it.
  double LargestVertex(const CostModel& model) const {
    double largest = 0;
    for (std::size_t v = 0; v < vertices(); ++v)
      largest = std::max(largest, model.Predict(features_.Of(v, v + 1)));
    return largest;
  }
  std::vector<std::size_t> CutByModel(const CostModel& model, std::size_t parts) const {
    return CutByCost(vertices(), parts, [&](std::size_t begin, std::size_t end) {
      return model.Predict(features_.Of(begin, end));
    });
  }

 private:
  std::string name_;
  std::uint32_t columns_;
  Csr csr_;
  RangeFeatures features_;
  AlignedBuffer rows_;
  AlignedBuffer sums_;
};

Result<RangesGraph> OpenRangesGraph(const std::string& store, const BenchRangesOptions& options,
                                    std::uint32_t scale, std::uint64_t seed,
                                    const JobControl& control) {
  BenchGraphOptions made;
  made.dir = options.dir;
  made.scale = scale;
  made.partitions = 1;
  made.seed = seed;
  if (!store.empty()) made.store = store;
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph graph, OpenBenchGraph(made, control));
  std::vector<Row> all(graph.graph->vertex_count());
  std::iota(all.begin(), all.end(), Row{0});
  RHIZOME_ASSIGN_OR_RETURN(PassLists lists, DrawPassLists(*graph.graph, all, {}, control));
  const std::string name = DescribeGraph(made, *graph.graph)["graph"];
  if (lists.neighbors.size() > std::numeric_limits<std::uint32_t>::max() || all.empty()) {
    return Fail(Status::InvalidArgument(name + ": a graph of this bench has vertices, and fewer "
                                               "than 2^32 edges"));
  }
  RangesGraph taken(name, std::move(lists), options.columns);
  RHIZOME_RETURN_IF_ERROR(taken.TakeRows());
  return taken;
}

/// Predicts the cost of ranges with `model`, then measures them. If `learns`, the model then learns
/// from the measurements.
Result<PredictionError> MeasureRanges(RangesGraph& graph, const std::vector<std::size_t>& ends,
                                      std::uint32_t rounds, CostModel& model, bool learns) {
  std::vector<FeatureVector> features;
  std::vector<double> predicted;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    features.push_back(graph.FeaturesOf(ends[i], ends[i + 1]));
    predicted.push_back(model.Predict(features.back()));
  }
  const std::vector<double> measured = graph.Measure(ends, rounds);
  if (learns) RHIZOME_RETURN_IF_ERROR(model.Learn(features, measured));
  PredictionError ranges;
  for (std::size_t i = 0; i < measured.size(); ++i) ranges.Add(predicted[i], measured[i]);
  return ranges;
}

/// Returns ends of ranges of very different sizes. An online model would not see such ranges; they
/// make the features independent.
std::vector<std::size_t> RandomEnds(std::size_t vertices, std::size_t parts,
                                    std::mt19937_64& random) {
  std::vector<std::size_t> ends = {0, vertices};
  for (std::size_t i = 1; i < parts; ++i) ends.push_back(random() % (vertices + 1));
  std::sort(ends.begin(), ends.end());
  return ends;
}

constexpr std::size_t kFitParts = 24;

/// Number of parts of a range that are measured separately, as a worker measures its blocks.
constexpr std::uint32_t kPartsOfRange = 4;

std::string RangesPlotScript(const std::string& path, const Json& results) {
  std::string script = PlotHead(path, 800, 500);
  const char* const methods[] = {"vertices", "edges", "learned", "learned on it"};
  int number = 0;
  for (const char* const method : methods) {
    script += fmt::format("$line{} << EOD\n", number++);
    for (const Json& row : results) {
      if (row["cut_by"] == method)
        script += fmt::format("{} {}\n", row["parts"].dump(), row["max_over_mean"].dump());
    }
    script += "EOD\n";
  }
  script +=
      "set logscale x 2\nset grid\nset key top left\nset xlabel 'ranges'\n"
      "set ylabel 'CPU seconds, largest over mean'\nset yrange [1:*]\nplot ";
  number = 0;
  for (const char* const method : methods)
    script += fmt::format("$line{} using 1:2 with linespoints title '{}', ", number++, method);
  return script + "1.12 with lines dashtype 2 title '1.12'\n";
}

}  // namespace

// Evaluates learned ranges: (1) learns the cost model on the given graphs; (2) divides another
// graph by equal vertices, by equal edges and by predicted cost, and measures each; (3) continues
// learning on that graph and measures again; (4) saves the costs and draws the plot, if requested.
Result<Json> BenchRanges(const BenchRangesOptions& options, const JobControl& control) {
  if (!options.plot.empty()) RHIZOME_RETURN_IF_ERROR(CheckPlotPath(options.plot));
  CostModel model;
  std::mt19937_64 random(options.seed);
  Json learned = Json::array();
  std::vector<std::string> fit = options.fit;
  if (fit.empty()) fit.emplace_back();
  for (const std::string& store : fit) {
    RHIZOME_ASSIGN_OR_RETURN(RangesGraph graph,
                             OpenRangesGraph(store, options, options.scale, options.seed, control));
    PredictionError next;  // predictions before measuring, from the second iteration on
    for (std::uint32_t i = 0; i < options.iterations; ++i) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(const PredictionError ranges,
                               MeasureRanges(graph, RandomEnds(graph.vertices(), kFitParts, random),
                                             options.rounds, model, /*learns=*/true));
      if (i > 0) next.Add(ranges);
    }
    learned.push_back({{"graph", graph.name()},
                       {"vertices", graph.vertices()},
                       {"edges", graph.edges()},
                       {"next_iteration_error", next.Error()},
                       {"next_iteration_r2", next.R2()}});
  }
  RHIZOME_ASSIGN_OR_RETURN(
      RangesGraph graph,
      OpenRangesGraph(options.cut, options, options.scale + 1, options.seed + 1, control));
  Json results = Json::array();
  PredictionError unseen;
  PredictionError next;
  PredictionError of_unequal;  // likewise, for ranges of many sizes
  CostModel online = model;
  for (const std::uint32_t parts : options.parts) {
    const std::pair<const char*, std::vector<std::size_t>> cuts[] = {
        {"vertices", graph.CutByVertices(parts)},
        {"edges", graph.CutByEdges(parts)},
        {"learned", graph.CutByModel(model, parts)}};
    for (const auto& [name, ends] : cuts) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_ASSIGN_OR_RETURN(const PredictionError ranges,
                               MeasureRanges(graph, ends, options.rounds, model, /*learns=*/false));
      results.push_back({{"parts", parts},
                         {"cut_by", name},
                         {"max_over_mean", MaxOverMean(ranges.measured())},
                         {"predicted_max_over_mean", MaxOverMean(ranges.predicted())},
                         {"error", ranges.Error()},
                         {"seconds", ranges.measured()},
                         {"predicted_seconds", ranges.predicted()}});
      unseen.Add(ranges);
    }
    // As in repeated runs on a graph: the costs of parts of ranges are learned, and the next
    // iteration divides the graph by them.
    for (int turn = 0; turn < 2; ++turn) {
      const std::vector<std::size_t> ends = graph.CutByModel(online, kPartsOfRange * parts);
      RHIZOME_ASSIGN_OR_RETURN(const PredictionError ranges,
                               MeasureRanges(graph, ends, options.rounds, online, /*learns=*/true));
      if (turn == 1) next.Add(ranges);
    }
    RHIZOME_ASSIGN_OR_RETURN(const PredictionError again,
                             MeasureRanges(graph, graph.CutByModel(online, parts), options.rounds,
                                           online, /*learns=*/false));
    // The costs of ranges of equal cost differ only by noise, which cannot be predicted. Unequal
    // ranges show what the model knows.
    RHIZOME_ASSIGN_OR_RETURN(const PredictionError unequal,
                             MeasureRanges(graph, RandomEnds(graph.vertices(), kFitParts, random),
                                           options.rounds, online, /*learns=*/false));
    of_unequal.Add(unequal);
    results.push_back({{"parts", parts},
                       {"cut_by", "learned on it"},
                       {"max_over_mean", MaxOverMean(again.measured())},
                       {"predicted_max_over_mean", MaxOverMean(again.predicted())},
                       {"error", again.Error()}});
  }
  if (!options.costs.empty()) {
    const std::string name = fmt::format("sum/{}/in", options.columns);
    RHIZOME_RETURN_IF_ERROR(SaveCostModels({{name, online}}, options.costs));
  }
  if (!options.plot.empty()) {
    RHIZOME_RETURN_IF_ERROR(DrawPlot(options.plot, RangesPlotScript(options.plot, results)));
  }
  Json weights = Json::object();
  for (std::size_t f = 0; f < kRangeFeatures; ++f)
    weights[RangeFeatureName(f)] = model.weights()[f];
  Json fields = {{"workload", "ranges"},
                 {"columns", options.columns},
                 {"rounds", options.rounds},
                 {"learned_on", std::move(learned)},
                 {"cut", graph.name()},
                 {"vertices", graph.vertices()},
                 {"edges", graph.edges()},
                 {"weights", std::move(weights)},
                 {"unseen_error", unseen.Error()},
                 {"unseen_r2", unseen.R2()},
                 {"next_iteration_error", next.Error()},
                 {"next_iteration_r2", next.R2()},
                 {"unequal_ranges_error", of_unequal.Error()},
                 {"unequal_ranges_r2", of_unequal.R2()},
                 {"largest_vertex_share",
                  graph.LargestVertex(model) /
                      std::max(model.Predict(graph.FeaturesOf(0, graph.vertices())), 1e-12)},
                 {"results", std::move(results)},
                 {"machine", DescribeMachine(options.dir)}};
  if (!options.plot.empty()) fields["plot"] = options.plot;
  return fields;
}

}  // namespace rhizome
