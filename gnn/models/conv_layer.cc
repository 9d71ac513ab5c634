#include "rhizome/gnn/conv_layer.h"

#include <cmath>

#include "rhizome/gnn/fused_layer.h"

namespace rhizome::inline internal {
namespace {

/// Returns whether it is cheaper to multiply all sources by the weights before aggregating. A
/// multiplication costs rows * in * out. Aggregation is bound by memory: reading a number costs
/// about as much as 32 multiplications.
bool TransformsFirst(const LayerGraph& graph, std::int64_t in, std::int64_t out) {
  const double edges = 32.0 * static_cast<double>(graph.lists.csr().neighbors.size());
  const auto product = static_cast<double>(in) * static_cast<double>(out);
  const double first =
      static_cast<double>(graph.sources()) * product + edges * static_cast<double>(out);
  const double after =
      static_cast<double>(graph.targets()) * product + edges * static_cast<double>(in);
  return first < after;
}

}  // namespace

float GcnScale(std::uint32_t degree) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(degree) + 1.0));
}

LayerGraph MakeLayerGraph(ModelKind kind, const CsrView& csr,
                          std::span<const std::uint32_t> degrees, std::int64_t sources) {
  LayerGraph graph;
  graph.lists = AggregateLists(csr, sources);
  graph.target_scale.resize(csr.targets());
  if (kind == ModelKind::kGcn) {
    for (std::int64_t j = 0; j < sources; ++j) graph.source_scale.push_back(GcnScale(degrees[j]));
    graph.self_scale.resize(csr.targets());
  }
  for (std::size_t t = 0; t < csr.targets(); ++t) {
    const auto listed = static_cast<float>(csr.offsets[t + 1] - csr.offsets[t]);
    float scale = listed == 0 ? 0 : 1 / listed;
    if (kind == ModelKind::kGcn) {
      const float own = graph.source_scale[t];
      graph.self_scale[t] = own * own;
      scale *= own * static_cast<float>(degrees[t]);
    }
    graph.target_scale[t] = scale;
  }
  return graph;
}

torch::Tensor ConvLayer::Forward(const LayerRows& x, const LayerGraph& graph,
                                 const Activation& activation) const {
  if (!TransformsFirst(graph, neighbor_weight.size(1), neighbor_weight.size(0))) {
    return FusedForward(*this, x, graph, activation);
  }
  SumFactors factors{.target = graph.target_scale, .source = graph.source_scale, .self = {}};
  if (kind == ModelKind::kGcn) factors.self = graph.self_scale;
  const torch::Tensor sums = AggregateSum(Linear(x, neighbor_weight), graph.lists, factors) + bias;
  if (kind == ModelKind::kGcn) return Activate(sums, activation);
  return Activate(sums + Linear(x.First(graph.targets()), self_weight), activation);
}

torch::Tensor ConvLayer::TileWeight() const {
  return kind == ModelKind::kGcn ? neighbor_weight.contiguous()
                                 : at::cat({self_weight, neighbor_weight}, 1);
}

}  // namespace rhizome::inline internal
