#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/kernels/attention_kernels.h"
#include "gnn/ops/aggregate_ops.h"

namespace rhizome {
inline namespace internal {

struct TypedGraph;

/// Reduction of the rows of a target's neighbours to one row.
enum class Reduction : std::uint8_t { kSum, kMean, kMax, kAttention };

/// Parameters of attention: a mean of rows, head by head, weighted by the softmax of scores.
struct AttentionPiece {
  AttendScore score = AttendScore::kAdditive;
  std::int64_t heads = 1;
  float slope = 0;     ///< of the LeakyReLU of scores
  double dropout = 0;  ///< share of the weights that are dropped in training
};

/// The reduction of a kind of layer.
struct ReducePiece {
  Reduction by = Reduction::kMean;

  /// Whether the target's own row is included in the reduction.
  bool own_joins = false;

  /// Sums only: whether each edge has the factor 1/sqrt((d_i + 1)(d_j + 1)), with the degrees of
  /// its ends.
  bool symmetric = false;

  AttentionPiece attention = {};  ///< for kAttention only

  bool needs_degrees() const { return by == Reduction::kSum; }

  /// Whether edge weights, if a graph has them, are factors of the rows.
  bool weighs() const { return by == Reduction::kSum || by == Reduction::kMean; }
};

/// The edges of one message-passing layer, from `sources` local rows to the first `targets` of
/// these rows, with the factors of its reduction.
/// Ownership: borrows the lists. Must outlive the backward pass of the tensors computed with it.
struct LayerGraph {
  AggregateLists lists;              ///< of targets, or of groups
  GroupedLists groups = {};          ///< empty: edges are not grouped by relation
  std::vector<float> target_scale;   ///< [targets], or [groups]
  std::vector<float> source_scale;   ///< [sources], or empty: ones
  std::vector<float> self_scale;     ///< [targets], weight of a vertex's own row; or empty: none
  SumFactors on_device = {};         ///< device copies, if the lists are placed on a device
  torch::Tensor device_memory = {};  ///< owns the device copies of lists and factors
  std::shared_ptr<const TypedGraph> typed = nullptr;    ///< for kinds with weights by vertex type
  std::shared_ptr<const GroupedCsr> grouped = nullptr;  ///< owns `groups` and their lists
  std::int64_t sources() const { return lists.sources(); }
  std::int64_t targets() const {
    return groups.empty() ? lists.targets() : static_cast<std::int64_t>(groups.targets());
  }

  /// The factors in the memory where operations over the lists read them.
  SumFactors factors() const {
    if (lists.uploads() != nullptr) return on_device;
    return {.target = target_scale, .source = source_scale, .self = self_scale};
  }
};

/// Places the graphs of a minibatch's layers on a device, in one copy. Arrays that graphs share are
/// copied once. The device memory, like the graphs, must outlive the backward pass.
/// Ownership: `uploads` must outlive the graphs. Errors are thrown (DeviceFailure).
void PlaceOnDevice(std::span<LayerGraph> graphs, DeviceUploads& uploads);

/// Factors of one target.
struct TargetScales {
  float target = 0;  ///< factor of the sum over its neighbours
  float self = 0;    ///< factor of its own row, if it is included
};

/// Summary of a sampled list of neighbours.
struct DrawnList {
  std::uint32_t listed = 0;  ///< number of sampled neighbours
  std::uint32_t degree = 0;  ///< number of neighbours sampled from; unused unless needs_degrees()
  float weight = 0;          ///< sum of the edges' weights; `listed` if edges have none
};

/// Returns the sum of the weights of edges [begin, end), or their number if there are no weights.
float WeightOf(std::span<const float> weights, std::uint32_t begin, std::uint32_t end);

/// Returns the factors of a target. The sum over a sample is scaled by degree/listed, so that its
/// expectation is the sum over the full list. A mean is the sum of weighted rows divided by the sum
/// of the weights. `own_scale`: GcnScale of the target, if the reduction is symmetric.
TargetScales ScalesOf(const ReducePiece& reduce, const DrawnList& list, float own_scale);

/// Returns 1/sqrt(degree + 1), the factor of one end of an edge in a symmetric sum. With edge
/// weights, the degree of a vertex is the sum of the weights of its edges. Source: Kipf and
/// Welling, GCN (ICLR 2017), section 2: self-loops count in the degree.
float GcnScale(double degree);

/// Arrays from which factors are computed, in addition to the lists.
struct EdgeNumbers {
  std::span<const std::uint32_t> degrees;   ///< [sources]; unused unless needs_degrees()
  std::span<const float> weights;           ///< [edges], or empty: all edges have weight 1
  std::span<const float> weighted_degrees;  ///< [sources]; for symmetric sums with weights
};

/// Builds a layer's graph with the factors of its reduction.
LayerGraph MakeLayerGraph(const ReducePiece& reduce, const CsrView& csr, const EdgeNumbers& numbers,
                          std::int64_t sources);

/// Builds a layer's graph of the first `targets` targets of grouped lists. Each group is reduced as
/// the list of a target. Only for reductions that need no degrees and do not include the target.
LayerGraph MakeGroupedGraph(const ReducePiece& reduce, std::shared_ptr<const GroupedCsr> grouped,
                            std::size_t targets, std::int64_t sources);

}  // namespace internal
}  // namespace rhizome
