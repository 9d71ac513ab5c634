#pragma once

#include <cstddef>

#include "rhizome/gnn/gather_max.h"

namespace rhizome::inline internal {

/// The heads of an additive attention, whose scores are LeakyReLU(s_j + q_i) on an edge from j to
/// i.
struct GatherHeads {
  std::size_t heads = 0;
  std::size_t width = 0;  ///< columns of all heads together
  float slope = 0;        ///< of LeakyReLU, below zero
  bool own = false;       ///< a target is the source of a first edge of its own
  GatherDropout dropout = {};

  // Rows, of `width` columns (w) and of one a head (h):
  /// a prepared row: [z w | s h | q h], what it gives, and its scores as a source and as a target
  std::size_t prepared() const { return width + 2 * heads; }

  /// a gathered row: [P w | N w | p h | n h | m h | q h], sums of z and of ones, each times
  /// exp(score - m), over the edges with a sum s + q above zero and over the others; m is near the
  /// largest score. Divided apart, they also give the gradient of q.
  std::size_t gathered() const { return 2 * width + 4 * heads; }

  /// its gradient, as it is gathered: [g w | q h | m h | r h | D h | dq h | z w | s h], where g is
  /// the gradient of the weighted mean, r is 1 / (p + n), D is g . mean, and dq, z and s are the
  /// row's
  std::size_t gradient() const { return 2 * width + 6 * heads; }
};

/// Lets the gathering of a target begin, with the query of its own prepared row.
void BeginAttention(const GatherHeads& heads, const float* own, float* state);

/// Adds the prepared rows of a window to the gathered rows of targets, which may so far have seen
/// others (GatherAttendArgs). The order of edges alone decides about the bits. `numbers`: by which
/// edges are dropped.
void AddAttention(const GatherHeads& heads, const GatherWindow& window,
                  const GatherNumbers& numbers, float* state);

/// The columns of what is kept while gradients are gathered, of which the first prepared() are the
/// result, [dz w | ds h | dq h]; behind it stand z and s of the row.
constexpr std::size_t AttentionGradientState(const GatherHeads& heads) {
  return 2 * heads.width + 3 * heads.heads;
}

/// Lets the gradient of a prepared row begin, with what is gathered of it itself (GatherHeads).
void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state);

/// Adds what comes back from a window's rows, the targets of the edges that the rows of `state` are
/// the sources of (GatherAttendGradientArgs).
void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window,
                          const GatherNumbers& numbers, float* state);

}  // namespace rhizome::inline internal
