#include "rhizome/gnn/layer_graph.h"

#include <cmath>

namespace rhizome::inline internal {

float GcnScale(std::uint32_t degree) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(degree) + 1.0));
}

TargetScales ScalesOf(const ReducePiece& reduce, std::uint32_t listed, std::uint32_t degree,
                      float own_scale) {
  TargetScales scales;
  const auto count = static_cast<float>(listed);
  if (reduce.by == Reduction::kMean && reduce.own_joins) {
    scales.target = scales.self = 1 / (count + 1);
    return scales;
  }
  if (listed > 0) scales.target = 1 / count;
  if (reduce.by == Reduction::kMean) return scales;
  scales.self = own_scale * own_scale;
  if (reduce.symmetric) {
    scales.target *= own_scale * static_cast<float>(degree);
  } else if (listed > 0) {
    scales.target = static_cast<float>(degree) / count;  // exactly 1 for a full list
  }
  return scales;
}

LayerGraph MakeLayerGraph(const ReducePiece& reduce, const CsrView& csr,
                          std::span<const std::uint32_t> degrees, std::int64_t sources) {
  LayerGraph graph;
  graph.lists = AggregateLists(csr, sources);
  if (reduce.by == Reduction::kMax || reduce.by == Reduction::kAttention) return graph;
  graph.target_scale.resize(csr.targets());
  if (reduce.own_joins) graph.self_scale.resize(csr.targets());
  for (std::int64_t j = 0; j < sources && reduce.symmetric; ++j)
    graph.source_scale.push_back(GcnScale(degrees[j]));
  for (std::size_t t = 0; t < csr.targets(); ++t) {
    const TargetScales scales = ScalesOf(reduce, csr.offsets[t + 1] - csr.offsets[t],
                                         reduce.needs_degrees() ? degrees[t] : 0,
                                         reduce.symmetric ? graph.source_scale[t] : 1);
    graph.target_scale[t] = scales.target;
    if (reduce.own_joins) graph.self_scale[t] = scales.self;
  }
  return graph;
}

}  // namespace rhizome::inline internal
