#include "gnn/ops/layer_graph.h"

#include <cmath>
#include <deque>
#include <utility>

#include "cuda/long_lists.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

float GcnScale(double degree) { return static_cast<float>(1.0 / std::sqrt(degree + 1.0)); }

TargetScales ScalesOf(const ReducePiece& reduce, const DrawnList& list, float own_scale) {
  TargetScales scales;
  if (reduce.by == Reduction::kMean && reduce.own_joins) {
    scales.target = scales.self = 1 / (list.weight + 1);
    return scales;
  }
  if (reduce.by == Reduction::kMean) {
    scales.target = list.weight > 0 ? 1 / list.weight : 0;
    return scales;
  }
  const auto listed = static_cast<float>(list.listed);
  const auto degree = static_cast<float>(list.degree);
  scales.self = own_scale * own_scale;
  if (list.listed == 0) return scales;
  if (reduce.symmetric) {
    scales.target = 1 / listed * (own_scale * degree);
  } else {
    scales.target = degree / listed;  // exactly 1 for a full list
  }
  return scales;
}

LayerGraph MakeLayerGraph(const ReducePiece& reduce, const CsrView& csr, const EdgeNumbers& numbers,
                          std::int64_t sources) {
  LayerGraph graph;
  const std::span<const float> weights =
      reduce.weighs() ? numbers.weights : std::span<const float>();
  graph.lists = AggregateLists(csr, sources, weights);
  if (!reduce.weighs()) return graph;
  graph.target_scale.resize(csr.targets());
  if (reduce.own_joins) graph.self_scale.resize(csr.targets());
  for (std::size_t j = 0; j < static_cast<std::size_t>(sources) && reduce.symmetric; ++j) {
    graph.source_scale.push_back(
        GcnScale(weights.empty() ? numbers.degrees[j] : numbers.weighted_degrees[j]));
  }
  for (std::size_t t = 0; t < csr.targets(); ++t) {
    const std::uint32_t begin = csr.offsets[t], end = csr.offsets[t + 1];
    const DrawnList list{.listed = end - begin,
                         .degree = reduce.needs_degrees() ? numbers.degrees[t] : 0,
                         .weight = WeightOf(weights, begin, end)};
    const TargetScales scales =
        ScalesOf(reduce, list, reduce.symmetric ? graph.source_scale[t] : 1);
    graph.target_scale[t] = scales.target;
    if (reduce.own_joins) graph.self_scale[t] = scales.self;
  }
  return graph;
}

LayerGraph MakeGroupedGraph(const ReducePiece& reduce, std::shared_ptr<const GroupedCsr> grouped,
                            std::size_t targets, std::int64_t sources) {
  RHIZOME_CHECK(!reduce.needs_degrees() && !reduce.own_joins);
  LayerGraph graph;
  graph.groups = grouped->view().First(targets);
  const std::uint32_t edges = graph.groups.offsets.back();
  const CsrView lists{.offsets = graph.groups.offsets,
                      .neighbors = std::span(grouped->lists.neighbors).first(edges)};
  const std::span<const float> weights = reduce.weighs() && !grouped->weights.empty()
                                             ? std::span(grouped->weights).first(edges)
                                             : std::span<const float>();
  graph.lists = AggregateLists(lists, sources, weights);
  graph.grouped = std::move(grouped);
  if (!reduce.weighs()) return graph;
  graph.target_scale.reserve(graph.groups.groups());
  for (std::size_t t = 0; t < targets; ++t) {
    const std::uint32_t first = graph.groups.group_begin[t], last = graph.groups.group_begin[t + 1];
    for (std::uint32_t g = first; g < last; ++g) {
      const bool whole = RHIZOME_MUTANT("a group's mean divides by the target's edges");
      const std::uint32_t begin = lists.offsets[whole ? first : g];
      const std::uint32_t end = lists.offsets[whole ? last : g + 1];
      const DrawnList list{.listed = end - begin, .weight = WeightOf(weights, begin, end)};
      graph.target_scale.push_back(ScalesOf(reduce, list, 1).target);
    }
  }
  return graph;
}

void PlaceOnDevice(std::span<LayerGraph> graphs, DeviceUploads& uploads) {
  PackedArrays packed;
  std::deque<LongLists> long_lists;  // kept until the copies are looked up
  for (const LayerGraph& graph : graphs) {
    long_lists.push_back(FindLongLists(graph.lists.csr().offsets));
    packed.Add(std::span<const cuda::ListPiece>(long_lists.back().pieces));
    packed.Add(graph.lists.csr().offsets);
    packed.Add(graph.lists.csr().neighbors);
    packed.Add(graph.lists.weights());
    packed.Add(std::span<const float>(graph.target_scale));
    packed.Add(std::span<const float>(graph.source_scale));
    packed.Add(std::span<const float>(graph.self_scale));
  }
  packed.Send(uploads);
  for (LayerGraph& graph : graphs) {
    const CsrView& csr = graph.lists.csr();
    const CsrView placed{.offsets = packed.Of(csr.offsets), .neighbors = packed.Of(csr.neighbors)};
    const LongLists& found = long_lists.front();
    graph.lists.PlaceOn(uploads, placed, packed.Of(graph.lists.weights()),
                        {packed.Of(std::span<const cuda::ListPiece>(found.pieces)), found.longest,
                         found.partial_count});
    graph.on_device = {.target = packed.Of(std::span<const float>(graph.target_scale)),
                       .source = packed.Of(std::span<const float>(graph.source_scale)),
                       .self = packed.Of(std::span<const float>(graph.self_scale))};
    graph.device_memory = packed.memory();
    long_lists.pop_front();
  }
}

float WeightOf(std::span<const float> weights, std::uint32_t begin, std::uint32_t end) {
  if (weights.empty()) return static_cast<float>(end - begin);
  double sum = 0;
  for (std::uint32_t e = begin; e < end; ++e) sum += weights[e];
  return static_cast<float>(sum);
}

}  // namespace internal
}  // namespace rhizome
