#pragma once

#include <cstddef>
#include <cstdint>

// Arguments of the aggregation kernels for training on the full graph. A target's result is
// accumulated over several calls; each call has the edges from one window of the source rows. No
// call sees a whole list, so there is no per-edge data, and a row carries everything that its edges
// need. The kernels follow the rules of aggregate_kernels.h: plain pointers, and the same bits from
// every set and for every division of a list.
//
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), for the
// recurrence of attention.

namespace rhizome {
inline namespace internal {

/// The rows of a window, and each target's edges from them. Strides are in elements.
struct GatherRows {
  const float* x = nullptr;
  std::size_t stride = 0;
  const std::uint32_t* begins = nullptr;  ///< [targets]
  const std::uint32_t* ends = nullptr;    ///< [targets]
  const std::uint32_t* index = nullptr;   ///< rows of x, ascending within a list
  std::uint32_t index_end = 0;            ///< as in SumArgs
};

/// Winner of a maximum over an empty list.
inline constexpr std::uint32_t kNoWinner = 0xFFFFFFFFU;

/// Takes maxima of `dim` columns and records which row attains each: the first among equals. A NaN
/// counts as larger than every number.
struct GatherMaxArgs {
  GatherRows rows;
  std::size_t dim = 0;
  const std::uint32_t* number = nullptr;  ///< number of each row of x; never kNoWinner
  float* state = nullptr;                 ///< [targets, 2 * dim]: maxima, and numbers as bits
};

/// Adds the gradients of the maxima that target t attains as number `first_target` + t. A row
/// counts once, even if it occurs several times in a list, because a maximum has one winner.
struct GatherMaxGradientArgs {
  GatherRows rows;  ///< [gradients | numbers as bits], of `dim` columns each
  std::size_t dim = 0;
  std::uint32_t first_target = 0;
  float* out = nullptr;  ///< [targets, dim]
};

/// Selects the attention weights to drop. For head h, the weight of the edge from row j to row t is
/// zero in the sum of rows (but not in the sum of weights) if ActivationDraw(SplitMix64(seed, t),
/// j, (n + 1) * heads + h) < dropped, else it is multiplied by `scale`. n numbers parallel edges
/// from 0; they are adjacent in the lists of both ends, so a draw is the same from either end.
struct GatherDropout {
  std::uint32_t dropped = 0;  ///< dropout probability times 2^32; 0: no dropout
  float scale = 1;
  std::uint64_t seed = 0;
};

/// Row numbers used as dropout keys. Only with dropout.
struct GatherNumbers {
  const std::uint32_t* of_rows = nullptr;  ///< number of each row of x
  std::uint64_t first = 0;  ///< number of the target (or source) whose state is first
  bool own = false;         ///< the edges connect targets to themselves; n is -1
};

/// Additive attention (GAT). The score is LeakyReLU(s + q) for a slope in [0, 1], per head. In the
/// layouts below, w means heads * width columns and h for one number per head:
///
///   rows:  [z w | s h | ...]
///   state: [P w | N w | p h | n h | m h | q h]
///
/// An edge raises the maximum m to its score if the score is larger by more than kMaximumSlack; the
/// sums are then multiplied by exp(old m - new m). Then it adds exp(score - m) * z to P and
/// exp(score - m) to p if s + q is positive, else to N and n. The sums start at zero, and m at
/// -infinity.
struct GatherAttendArgs {
  GatherRows rows;
  std::size_t heads = 1;  ///< at most kMaxHeads
  std::size_t width = 0;  ///< columns per head
  float slope = 0;
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// Gradient of additive attention that flows from the targets back to a source:
///
///   rows:  [g w | q h | m h | r h | D h | ...]
///   state: [dz w | ds h | dq h | z w | s h]; dz and ds are added to
///
/// An edge has the weight exp(LeakyReLU(s + q) - m) * r and the dropout factor k. It adds k *
/// weight * g to dz and weight * (k * g . z - D) * LeakyReLU'(s + q) to ds. Dot products use the
/// partial sums of EdgeDotArgs.
struct GatherAttendGradientArgs {
  GatherRows rows;
  std::size_t heads = 1;
  std::size_t width = 0;
  float slope = 0;
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// GATv2 attention, whose scores read whole rows of both ends: the sum over the columns of a head
/// of vectors * LeakyReLU(z + q).
///
///   rows:  [z w | ...]
///   state: [O w | d h | m h | q w]
///
/// An edge raises m as in GatherAttendArgs. Then it adds exp(score - m) * z to O and exp(score - m)
/// to d.
struct GatherAttendV2Args {
  GatherRows rows;
  std::size_t heads = 1;  ///< at most kMaxHeads
  std::size_t width = 0;  ///< columns per head
  float slope = 0;
  const float* vectors = nullptr;  ///< [heads, width]
  float* state = nullptr;
  GatherDropout dropout = {};
  GatherNumbers numbers = {};
};

/// Gradients of GATv2 attention, in two aggregations of rows [g w | q w | m h | r h | D h | z w]:
/// one for sources (attend_v2_gradient, over lists of targets) and one for the targets' queries
/// (attend_v2_query_gradient, over lists of sources). Their states are
///
///   [E w | S w | z w]    and    [T w | g w | q w | m h | r h | D h].
///
/// An edge has the weight exp(score - m) * r and the dropout factor k. It adds k * weight * g to E,
/// and weight * (k * g . z - D) * LeakyReLU'(z + q) to S and T; that, times the vectors, is the
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

}  // namespace internal
}  // namespace rhizome
