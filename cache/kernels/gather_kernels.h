#pragma once

#include <cstddef>
#include <cstdint>

// The arguments of the kernels that gather over all edges of a graph: what they make of a target
// is kept between calls, each of which has the edges from a window of the rows. Training on the
// full graph knows no list as a whole, so that nothing is said of an edge, and a row carries all
// that is asked of it. They follow the rules of aggregate_kernels.h: plain pointers, the same bits
// from every set, wherever a list is cut.
//
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), for the
// recurrence of attention.

namespace rhizome::inline internal {

/// The rows of a window, and the edges from them of each target. Strides are in elements.
struct GatherRows {
  const float* x = nullptr;
  std::size_t stride = 0;
  const std::uint32_t* begins = nullptr;  ///< [targets]
  const std::uint32_t* ends = nullptr;    ///< [targets]
  const std::uint32_t* index = nullptr;   ///< rows of x, ascending within a list
  std::uint32_t index_end = 0;            ///< as in SumArgs
};

/// The winner of a maximum over nothing.
inline constexpr std::uint32_t kNoWinner = 0xFFFFFFFFU;

/// Takes maxima of `dim` columns, and who attains them: of equal ones the first, and a NaN counts
/// as larger than every number.
struct GatherMaxArgs {
  GatherRows rows;
  std::size_t dim = 0;
  const std::uint32_t* number = nullptr;  ///< of each row of x, not kNoWinner
  float* state = nullptr;                 ///< [targets, 2 * dim]: maxima, and numbers as bits
};

/// Adds the gradients of the maxima that target t attains, as number `first_target` + t. A row
/// counts once, as often as it stands in a list: its maximum has one winner.
struct GatherMaxGradientArgs {
  GatherRows rows;  ///< [gradients | numbers as bits], of `dim` columns each
  std::size_t dim = 0;
  std::uint32_t first_target = 0;
  float* out = nullptr;  ///< [targets, dim]
};

/// Which weights of attention are dropped: that of an edge from row j to row t and of head h is
/// zero in the sum of rows (not in that of weights) where ActivationDraw(SplitMix64(seed, t), j, (n
/// + 1) * heads + h) < dropped, else multiplied by `scale`. Of parallel edges, which stand side by
/// side in the lists of both ends, n counts from 0. So a draw is the same read from either end.
struct GatherDropout {
  std::uint32_t dropped = 0;  ///< dropout probability times 2^32; 0: no dropout
  float scale = 1;
  std::uint64_t seed = 0;
};

/// The numbers by which rows draw. Only with dropout.
struct GatherNumbers {
  const std::uint32_t* of_rows = nullptr;  ///< of each row of x
  std::uint64_t first = 0;                 ///< of the target (or source) whose state is first
  bool own = false;  ///< the edges are those of targets to themselves, for which n is -1
};

/// Additive attention, whose score is LeakyReLU(s + q) for a slope in [0, 1], head by head. With
/// w = heads * width columns (w) and numbers of heads (h):
///
///   rows:  [z w | s h | ...]
///   state: [P w | N w | p h | n h | m h | q h]
///
/// An edge raises the maximum m to its score if that is larger by more than kMaximumSlack, which
/// multiplies the sums by exp(before - m). Then it adds exp(score - m) * z to P and exp(score - m)
/// to p where s + q is above zero, and to N and n elsewhere. They begin with zeros, and m with
/// -infinity.
struct GatherAttendArgs {
  GatherRows rows;
  std::size_t heads = 1;  ///< at most kMaxHeads
  std::size_t width = 0;  ///< columns of a head
  float slope = 0;
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// The gradient that comes back from the targets of such an attention to a source of theirs:
///
///   rows:  [g w | q h | m h | r h | D h | ...]
///   state: [dz w | ds h | dq h | z w | s h], of which dz and ds are added to
///
/// An edge has the weight exp(LeakyReLU(s + q) - m) * r, which dropout multiplies by k; it adds
/// k * weight * g to dz and weight * (k * g . z - D) * LeakyReLU'(s + q) to ds. Dot products have
/// the partial sums of EdgeDotArgs.
struct GatherAttendGradientArgs {
  GatherRows rows;
  std::size_t heads = 1;
  std::size_t width = 0;
  float slope = 0;
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// Attention whose scores take whole rows of both ends: the sum over the columns of a head of
/// vectors * LeakyReLU(z + q).
///
///   rows:  [z w | ...]
///   state: [O w | d h | m h | q w]
///
/// An edge raises m as above; then it adds exp(score - m) * z to O and exp(score - m) to d.
struct GatherAttendV2Args {
  GatherRows rows;
  std::size_t heads = 1;  ///< at most kMaxHeads
  std::size_t width = 0;  ///< columns of a head
  float slope = 0;
  const float* vectors = nullptr;  ///< [heads, width]
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// The gradients of such an attention, in two gatherings of rows [g w | q w | m h | r h | D h | z
/// w]: that of sources (attend_v2_gradient, over lists of targets) and that of what targets ask
/// (attend_v2_query_gradient, over lists of sources), whose states are
///
///   [E w | S w | z w]    and    [T w | g w | q w | m h | r h | D h].
///
/// An edge has the weight exp(score - m) * r and dropout's factor k. It adds k * weight * g to E,
/// and to S and T weight * (k * g . z - D) * LeakyReLU'(z + q), which times the vectors is the
/// gradient of z + q.
struct GatherAttendV2GradientArgs {
  GatherRows rows;
  std::size_t heads = 1;
  std::size_t width = 0;
  float slope = 0;
  const float* vectors = nullptr;  ///< [heads, width]
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// A set of these kernels. Each function computes targets [begin, end).
struct GatherKernels {
  void (*max)(const GatherMaxArgs&, std::size_t begin, std::size_t end);
  void (*max_gradient)(const GatherMaxGradientArgs&, std::size_t begin, std::size_t end);
  void (*attend)(const GatherAttendArgs&, std::size_t begin, std::size_t end);
  void (*attend_gradient)(const GatherAttendGradientArgs&, std::size_t begin, std::size_t end);
  void (*attend_v2)(const GatherAttendV2Args&, std::size_t begin, std::size_t end);
  void (*attend_v2_gradient)(const GatherAttendV2GradientArgs&, std::size_t begin, std::size_t end);
  void (*attend_v2_query_gradient)(const GatherAttendV2GradientArgs&, std::size_t begin,
                                   std::size_t end);
};

extern const GatherKernels kPortableGathers;
#if defined(__x86_64__)
extern const GatherKernels kAvx2Gathers;
extern const GatherKernels kAvx512Gathers;
#endif

}  // namespace rhizome::inline internal
