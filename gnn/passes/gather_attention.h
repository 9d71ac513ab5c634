#pragma once

#include <cstddef>

#include "rhizome/cache/attention_kernels.h"
#include "rhizome/gnn/gather_max.h"

namespace rhizome::inline internal {

/// The heads of an attention. Scores are LeakyReLU(s_j + q_i) on an edge from j to i; or, second,
/// those of whole rows, vectors . LeakyReLU(z_j + q_i).
struct GatherHeads {
  AttendScore score = AttendScore::kAdditive;
  std::size_t heads = 0;
  std::size_t width = 0;           ///< columns of all heads together
  float slope = 0;                 ///< of LeakyReLU, below zero
  bool own = false;                ///< a target is the source of a first edge of its own
  const float* vectors = nullptr;  ///< [heads, width / heads], of the second kind
  GatherDropout dropout = {};

  constexpr bool second() const { return score == AttendScore::kAdditiveV2; }

  /// Do gatherings for these heads have the same shapes?
  bool alike(const GatherHeads& other) const {
    return score == other.score && heads == other.heads && width == other.width;
  }

  // Rows, of `width` columns (w) and of one a head (h):
  /// a prepared row: [z w | s h | q h], what it gives, and its scores as a source and as a target;
  /// second: [z w | q w]
  constexpr std::size_t prepared() const { return second() ? 2 * width : width + 2 * heads; }

  /// a gathered row: [P w | N w | p h | n h | m h | q h], sums of z and of ones, each times
  /// exp(score - m), over the edges with a sum s + q above zero and over the others; m is near the
  /// largest score. Divided apart, they also give the gradient of q. Second: [O w | d h | m h],
  /// sums over all edges
  constexpr std::size_t gathered() const {
    return second() ? width + 2 * heads : 2 * width + 4 * heads;
  }

  /// its gradient, as it is gathered: [g w | q h | m h | r h | D h | dq h | z w | s h], where g is
  /// the gradient of the weighted mean, r is 1 / (p + n), D is g . mean, and dq, z and s are the
  /// row's; second: [g w | q w | m h | r h | D h | z w], r being 1 / d
  constexpr std::size_t gradient() const {
    return second() ? 3 * width + 3 * heads : 2 * width + 6 * heads;
  }

  /// Columns of what comes back to a prepared row as a source, [dz w | ds h | dq h]; second: of
  /// [E w | S w], of which dz is E + vectors * S (GatherAttendV2GradientArgs)
  constexpr std::size_t returned() const { return prepared(); }
};

/// The columns of what is kept of a target while it attends, of which the first gathered() are the
/// result.
constexpr std::size_t AttentionState(const GatherHeads& heads) {
  return heads.gathered() + (heads.second() ? heads.width : 0);
}

/// Lets the gathering of a target begin, with the query of its own prepared row.
void BeginAttention(const GatherHeads& heads, const float* own, float* state);

/// Adds the prepared rows of a window to the gathered rows of targets, which may so far have seen
/// others (GatherAttendArgs). The order of edges alone decides about the bits. `numbers`: by which
/// edges are dropped.
void AddAttention(const GatherHeads& heads, const GatherWindow& window,
                  const GatherNumbers& numbers, float* state);

/// The columns of what is kept while gradients are gathered, of which the first returned() are the
/// result; behind it stand z and s of the row, or z alone.
constexpr std::size_t AttentionGradientState(const GatherHeads& heads) {
  return heads.returned() + heads.width + (heads.second() ? 0 : heads.heads);
}

/// Lets the gradient of a prepared row begin, with what is gathered of it itself (GatherHeads).
void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state);

/// Adds what comes back from a window's rows, the targets of the edges that the rows of `state` are
/// the sources of (GatherAttendGradientArgs).
void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window,
                          const GatherNumbers& numbers, float* state);

// Second, what targets ask has a gathering of its own, over the lists that layers walk.

/// The columns of its state, of which the first `width` are the result, T; the gradient of q is
/// vectors * T.
constexpr std::size_t QueryGradientState(const GatherHeads& heads) {
  return 3 * heads.width + 3 * heads.heads;
}

/// Lets it begin, with what is gathered of the target itself.
void BeginQueryGradient(const GatherHeads& heads, const float* own, float* state);

/// Adds the sources that stand in a window.
void AddQueryGradient(const GatherHeads& heads, const GatherWindow& window,
                      const GatherNumbers& numbers, float* state);

}  // namespace rhizome::inline internal
