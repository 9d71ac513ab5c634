#pragma once

#include <cstddef>

#include "gnn/ops/attention_ops.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// The forward and the backward pass of attention without libtorch's autograd. Operations with
// gradients are composed of them.

/// Input tensors of Attend or AttendGatv2, float32 and contiguous. In a backward pass with additive
/// scores `values` may be undefined.
struct AttentionInputs {
  torch::Tensor values;     ///< [sources, heads * width]; half precision in the forward pass, too
  torch::Tensor source;     ///< [sources, heads]; undefined for additive-v2
  torch::Tensor query;      ///< [targets, heads]; for additive-v2 [targets, heads * width]
  torch::Tensor attention;  ///< [heads, width]; undefined for additive scores

  AttendScore score() const {
    return source.defined() ? AttendScore::kAdditive : AttendScore::kGatv2;
  }
};

/// Results of the forward pass.
struct Attended {
  torch::Tensor out, maximum, denominator;
};

/// Saves the address of the lists and the shape in an autograd context, which can hold only tensors
/// and plain values. KeptLists and KeptShape read them back.
void KeepAttention(torch::autograd::AutogradContext& context, const AggregateLists& lists,
                   const AttentionShape& shape);
const AggregateLists& KeptLists(const torch::autograd::AutogradContext& context);
AttentionShape KeptShape(const torch::autograd::AutogradContext& context);

Attended AttendForward(const AttentionInputs& in, const AggregateLists& lists,
                       const AttentionShape& shape);

/// The backward pass: first all sources, in runs of any size, then the targets. `gradient` is the
/// gradient with respect to Attended::out, contiguous.
/// Ownership: borrows the lists.
class AttentionGradient {
 public:
  AttentionGradient(const AttentionInputs& in, const Attended& made, const torch::Tensor& gradient,
                    const AggregateLists& lists, const AttentionShape& shape);

  /// Computes the gradients of sources [first, first + count) on the calling thread. `values` are
  /// their rows, [count, heads * width], and `out` receives the gradients of these rows; for
  /// additive scores without the part through the scores (see source()). `group` < kVectorGroups
  /// selects the partial sum of the attention vectors' gradient; the division into groups
  /// determines the bits of that sum.
  /// Threads: one per group.
  void OfSources(std::size_t group, std::size_t first, std::size_t count, const float* values,
                 float* out) const;

  /// Additive scores only: the gradients of the scores of sources, [sources, heads].
  const torch::Tensor& source() const { return source_; }

  /// Gradients on the side of the targets. Computed on the compute threads, after all sources.
  struct OfTargets {
    torch::Tensor query;
    torch::Tensor attention;  ///< undefined for additive scores
  };
  OfTargets Targets() const;

 private:
  AttendGradientArgs GroupArgs(std::size_t group) const;

  const AggregateLists& lists_;
  const AttentionInputs in_;
  const torch::Tensor gradient_;
  torch::Tensor stats_, edge_gradient_, own_gradient_, source_;
  torch::Tensor of_vectors_;  // [kVectorGroups, heads, width]; additive-v2 only
  AttendGradientArgs args_;
};

}  // namespace internal
}  // namespace rhizome
