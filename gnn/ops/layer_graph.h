#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/attention_kernels.h"
#include "rhizome/gnn/aggregate_ops.h"

namespace rhizome::inline internal {

/// How the rows of a target's neighbours become one.
enum class Reduction : std::uint8_t { kSum, kMean, kMax, kAttention };

/// A reduction by attention: the mean of the rows, head by head, weighted by the softmax of scores.
struct AttentionPiece {
  AttendScore score = AttendScore::kAdditive;
  std::int64_t heads = 1;
  float slope = 0;     ///< of the LeakyReLU of scores
  double dropout = 0;  ///< share of the weights that training drops
};

/// The reduction of a kind of layer.
struct ReducePiece {
  Reduction by = Reduction::kMean;

  /// Whether the target's own row is one of those that are reduced.
  bool own_joins = false;

  /// Sums only: whether each edge counts 1/sqrt((d_i + 1)(d_j + 1)), with the degrees of its ends.
  bool symmetric = false;

  AttentionPiece attention = {};  ///< of kAttention

  bool needs_degrees() const { return by == Reduction::kSum; }

  /// Whether rows count by the weights of their edges, where a graph has them.
  bool weighs() const { return by == Reduction::kSum || by == Reduction::kMean; }
};

/// The edges of one message-passing layer, from `sources` local rows to the first `targets` of
/// them, with the factors of its reduction.
/// Ownership: borrows the lists; must outlive the backward pass of what was computed with it.
struct LayerGraph {
  AggregateLists lists;
  std::vector<float> target_scale;   ///< [targets]
  std::vector<float> source_scale;   ///< [sources], or empty: ones
  std::vector<float> self_scale;     ///< [targets], weight of a vertex's own row; or empty: none
  SumFactors on_device = {};         ///< copies of these, if the lists are placed on a device
  torch::Tensor device_memory = {};  ///< that lists and factors take there
  std::int64_t sources() const { return lists.sources(); }
  std::int64_t targets() const { return lists.targets(); }

  /// The factors where the operations over the lists read them.
  SumFactors factors() const {
    if (lists.uploads() != nullptr) return on_device;
    return {.target = target_scale, .source = source_scale, .self = self_scale};
  }
};

/// Places the graphs of a minibatch's layers on a device, with one copy: of arrays that they share
/// there is one. The device's memory must outlive the backward pass, as the graphs.
/// Ownership: `uploads` must outlive the graphs. Errors are thrown (DeviceFailure).
void PlaceOnDevice(std::span<LayerGraph> graphs, DeviceUploads& uploads);

/// The factors of one target.
struct TargetScales {
  float target = 0;  ///< of the sum over its neighbours
  float self = 0;    ///< of its own row, if that joins
};

/// A list of neighbours that was drawn.
struct DrawnList {
  std::uint32_t listed = 0;  ///< neighbours
  std::uint32_t degree = 0;  ///< those that they were drawn of; unused unless needs_degrees()
  float weight = 0;          ///< the sum of their edges' weights: `listed` where edges have none
};

/// Returns the sum of the weights of edges [begin, end); their number if there are no weights.
float WeightOf(std::span<const float> weights, std::uint32_t begin, std::uint32_t end);

/// Returns the factors of a target. The sum over a sample is scaled by degree/listed, so that its
/// expectation is that of the full list; a mean is that of weighted rows, divided by the sum of the
/// weights. `own_scale`: GcnScale of the target, if the reduction is symmetric.
TargetScales ScalesOf(const ReducePiece& reduce, const DrawnList& list, float own_scale);

/// Returns 1/sqrt(degree + 1), the factor of one end of an edge in a symmetric sum; with weights a
/// vertex has the sum of its edges' as degree. Source: Kipf and Welling, GCN (ICLR 2017), section
/// 2: self-loops count in the degree.
float GcnScale(double degree);

/// The numbers of edges that factors are made of, beside the lists themselves.
struct EdgeNumbers {
  std::span<const std::uint32_t> degrees;   ///< [sources]; unused unless needs_degrees()
  std::span<const float> weights;           ///< [edges], or empty: edges count alike
  std::span<const float> weighted_degrees;  ///< [sources], with weights and symmetric sums
};

/// Builds the factors.
LayerGraph MakeLayerGraph(const ReducePiece& reduce, const CsrView& csr, const EdgeNumbers& numbers,
                          std::int64_t sources);

}  // namespace rhizome::inline internal
