#pragma once

#include <cstddef>

#include "cache/kernels/attention_kernels.h"
#include "gnn/passes/max_aggregation.h"

namespace rhizome {
inline namespace internal {

/// The heads of an attention. The score of an edge from j to i is LeakyReLU(s_j + q_i) for GAT, and
/// vectors . LeakyReLU(z_j + q_i), computed from whole rows, for GATv2 (AttendScore::kGatv2).
struct GatherHeads {
  AttendScore score = AttendScore::kAdditive;
  std::size_t heads = 0;
  std::size_t width = 0;           ///< columns of all heads together
  float slope = 0;                 ///< of LeakyReLU, for negative arguments
  bool own = false;                ///< each target has a first edge from itself
  const float* vectors = nullptr;  ///< for GATv2
  GatherDropout dropout = {};

  constexpr bool second() const { return score == AttendScore::kGatv2; }

  /// Returns whether aggregations for both have rows of the same shapes.
  bool alike(const GatherHeads& other) const {
    return score == other.score && heads == other.heads && width == other.width;
  }

  // Layouts of rows. A part marked w has `width` columns, a part marked h one column per head.
  /// Columns of a prepared row: the row z that it contributes, its scores s as a source and q as a
  /// target.
  ///   GAT:   [z w | s h | q h]
  ///   GATv2: [z w | q w], where q is a whole row
  constexpr std::size_t prepared() const { return second() ? 2 * width : width + 2 * heads; }

  /// Columns of an aggregated row. P and p are the sums of z and of ones, each times exp(score -
  /// m), over the edges with s + q above zero; N and n are these sums over the other edges. m is
  /// near the largest score. Separate sums also yield the gradient of q. For GATv2, O and d are the
  /// sums over all edges.
  ///   GAT:   [P w | N w | p h | n h | m h | q h]
  ///   GATv2: [O w | d h | m h]
  constexpr std::size_t gathered() const {
    return second() ? width + 2 * heads : 2 * width + 4 * heads;
  }

  /// Columns of the gradient of an aggregated row, in the form that the backward pass aggregates. g
  /// is the gradient of the weighted mean, r is 1 / (p + n) or 1 / d, D is g . mean; dq, z and s
  /// belong to the row itself.
  ///   GAT:   [g w | q h | m h | r h | D h | dq h | z w | s h]
  ///   GATv2: [g w | q w | m h | r h | D h | z w]
  constexpr std::size_t gradient() const {
    return second() ? 3 * width + 3 * heads : 2 * width + 6 * heads;
  }

  /// Columns of the gradient of a prepared row as a source. For GATv2, dz is E + vectors * S
  /// (GatherAttendV2GradientArgs).
  ///   GAT:   [dz w | ds h | dq h]
  ///   GATv2: [E w | S w]
  constexpr std::size_t returned() const { return prepared(); }
};

/// Returns the number of columns kept for a target during aggregation. The first gathered() columns
/// are the result.
constexpr std::size_t AttentionState(const GatherHeads& heads) {
  return heads.gathered() + (heads.second() ? heads.width : 0);
}

/// Initialises the state of a target with the query of its own prepared row.
void BeginAttention(const GatherHeads& heads, const float* own, float* state);

/// Adds the prepared rows of a window to the states of targets, to which other windows may have
/// been added before (GatherAttendArgs). The bits of the result depend only on the order of edges.
/// `numbers`: the numbers of rows, which determine the edges that are dropped.
void AddAttention(const GatherHeads& heads, const GatherWindow& window,
                  const GatherNumbers& numbers, float* state);

/// Returns the number of columns kept for a row while its gradient is aggregated. The first
/// returned() columns are the result; z and s of the row follow, for GATv2 only z.
constexpr std::size_t AttentionGradientState(const GatherHeads& heads) {
  return heads.returned() + heads.width + (heads.second() ? 0 : heads.heads);
}

/// Initialises the gradient of a prepared row. `own`: the row's own GatherHeads::gradient.
void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state);

/// Adds the gradients from the rows of a window. These are the targets of edges whose sources are
/// the rows of `state` (GatherAttendGradientArgs).
void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window,
                          const GatherNumbers& numbers, float* state);

// GATv2 aggregates the gradients of queries separately, over the lists of the forward pass.

/// Returns the number of columns kept for a target. The first `width` columns are the result T; the
/// gradient of q is vectors * T.
constexpr std::size_t QueryGradientState(const GatherHeads& heads) {
  return 3 * heads.width + 3 * heads.heads;
}

/// Initialises the state of a target. `own`: the target's own GatherHeads::gradient.
void BeginQueryGradient(const GatherHeads& heads, const float* own, float* state);

/// Adds the sources in a window.
void AddQueryGradient(const GatherHeads& heads, const GatherWindow& window,
                      const GatherNumbers& numbers, float* state);

}  // namespace internal
}  // namespace rhizome
