#pragma once

#include <cstddef>

#include "rhizome/gnn/attention_ops.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

// The two passes of attention, without libtorch's gradients, of which operations with gradients are
// made.

/// The tensors that an attention reads, float32 and contiguous: those of Attend or of AttendV2. In
/// a backward pass with additive scores `values` may be undefined.
struct AttentionInputs {
  torch::Tensor values;     ///< [sources, heads * width]; forward also of half precision
  torch::Tensor source;     ///< [sources, heads]; undefined for additive-v2
  torch::Tensor query;      ///< [targets, heads], or of additive-v2 [targets, heads * width]
  torch::Tensor attention;  ///< [heads, width]; undefined for additive scores

  AttendScore score() const {
    return source.defined() ? AttendScore::kAdditive : AttendScore::kAdditiveV2;
  }
};

/// The results of the forward pass.
struct Attended {
  torch::Tensor out, maximum, denominator;
};

/// Keeps lists, by address, and shape in a context, which keeps tensors and plain values only; and
/// what was kept.
void KeepAttention(torch::autograd::AutogradContext& context, const AggregateLists& lists,
                   const AttentionShape& shape);
const AggregateLists& KeptLists(const torch::autograd::AutogradContext& context);
AttentionShape KeptShape(const torch::autograd::AutogradContext& context);

Attended AttendForward(const AttentionInputs& in, const AggregateLists& lists,
                       const AttentionShape& shape);

/// The backward pass: first all sources, in any runs, then the targets. `gradient` is that of
/// Attended::out, contiguous.
/// Ownership: borrows the lists.
class AttentionGradient {
 public:
  AttentionGradient(const AttentionInputs& in, const Attended& made, const torch::Tensor& gradient,
                    const AggregateLists& lists, const AttentionShape& shape);

  /// Computes the gradients of sources [first, first + count) on the calling thread. `values`:
  /// their rows, [count, heads * width]; `out`: the gradients of these, where scores of sources are
  /// numbers of their own. `group` < kVectorGroups is what these sources belong to for the sum of
  /// the vectors' gradient: the division into groups decides its bits.
  /// Threads: one for each group.
  void OfSources(std::size_t group, std::size_t first, std::size_t count, const float* values,
                 float* out) const;

  /// Additive scores: the gradients of the scores of sources, [sources, heads].
  const torch::Tensor& source() const { return source_; }

  /// The gradients of what belongs to targets, after those of all sources; on the compute threads.
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

}  // namespace rhizome::inline internal
