#pragma once

#include <cstddef>

#include "gnn/ops/attention_ops.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// The forward and the backward pass of attention without libtorch's autograd. Operations with
// gradients are composed of them.

/// Input tensors of Attend, AttendGatv2 or attention by dot products (kDot), float32 and
/// contiguous. In a backward pass with additive scores `values` may be undefined.
struct AttentionInputs {
  /// [sources, heads * width], or with kDot [sources, 2 * heads * width], the keys, then the
  /// values; half precision in the forward pass, too
  torch::Tensor values;
  torch::Tensor source;     ///< [sources, heads]; additive scores only
  torch::Tensor query;      ///< additive scores: [targets, heads], else [targets, heads * width]
  torch::Tensor attention;  ///< [heads, width]; additive-v2 only

  AttendScore score() const {
    if (source.defined()) return AttendScore::kAdditive;
    return attention.defined() ? AttendScore::kGatv2 : AttendScore::kDot;
  }
};

/// Results of the forward pass.
struct Attended {
  torch::Tensor out, maximum, denominator;
};

/// Gradients with respect to the result of the forward pass, contiguous.
struct AttendedGradient {
  torch::Tensor out;

  /// [targets, heads], with kDot: dot products of result and gradient for the softmax to which a
  /// target belongs. Attended::out may then be undefined.
  torch::Tensor dots = {};
};

/// Saves the address of the lists and the shape in an autograd context, which can hold only tensors
/// and plain values. KeptLists and KeptShape read them back.
void KeepAttention(torch::autograd::AutogradContext& context, const AggregateLists& lists,
                   const AttentionShape& shape);
const AggregateLists& KeptLists(const torch::autograd::AutogradContext& context);
AttentionShape KeptShape(const torch::autograd::AutogradContext& context);

Attended AttendForward(const AttentionInputs& in, const AggregateLists& lists,
                       const AttentionShape& shape);

/// The backward pass: first all sources, in runs of any size, then the targets.
/// Ownership: borrows the lists.
class AttentionGradient {
 public:
  AttentionGradient(const AttentionInputs& in, const Attended& made,
                    const AttendedGradient& gradient, const AggregateLists& lists,
                    const AttentionShape& shape);

  /// Computes the gradients of sources [first, first + count) on the calling thread. `values` are
  /// their rows, as in AttentionInputs, and `out` receives the gradients of these rows; for
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
    torch::Tensor attention;  ///< additive-v2 only
  };

  /// `query`: receives the gradient of the queries; undefined: a new tensor does. With kDot it may
  /// be AttentionInputs::query.
  OfTargets Targets(const torch::Tensor& query = {}) const;

 private:
  AttendGradientArgs GroupArgs(std::size_t group) const;

  const AggregateLists& lists_;
  const AttentionInputs in_;
  const AttendedGradient gradient_;
  torch::Tensor stats_, edge_gradient_, own_gradient_, source_;
  torch::Tensor of_vectors_;  // [kVectorGroups, heads, width]; additive-v2 only
  AttendGradientArgs args_;
};

}  // namespace internal
}  // namespace rhizome
