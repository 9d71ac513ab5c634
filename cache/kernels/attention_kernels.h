#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kernels/aggregate_kernels.h"

// Arguments of the attention kernels: for each head, softmax over the edges of a list and the
// weighted sum of its rows. They follow the rules of aggregate_kernels.h: plain pointers, the same
// bits from every set, no tensor of edges times columns.
//
// Sources: Velickovic et al., "Graph attention networks" (ICLR 2018); Brody et al., "How attentive
// are graph attention networks?" (ICLR 2022); Hu et al., "Heterogeneous graph transformer" (WWW
// 2020), for dot products; Milakov and Gimelshein, "Online normalizer calculation for softmax"
// (2018), for the recurrence; Dao et al., "FlashAttention" (NeurIPS 2022), for the backward pass
// that recomputes weights from maximum and denominator.

namespace rhizome {
inline namespace internal {

/// Formula for the score of an edge from source j to target t. LeakyReLU(x) is the larger of x and
/// slope * x, for a slope in [0, 1].
enum class AttendScore : std::uint8_t {
  kAdditive,  ///< LeakyReLU(source[j, h] + query[t, h]), GAT
  kGatv2,     ///< sum over c of attention[h, c] * LeakyReLU(x[j, h, c] + query[t, h, c]), GATv2
  kDot,       ///< key[j, h] . query[t, h]; rows of x are [keys | values], HGT
};

/// Columns of x per column of a result: with kDot a row holds heads * width keys, followed by as
/// many values, and the values are summed.
[[gnu::always_inline]] constexpr std::size_t AttendParts(AttendScore score) {
  return score == AttendScore::kDot ? 2 : 1;
}

/// Maximum number of heads that the kernels support.
inline constexpr std::size_t kMaxHeads = 256;

/// Selects the weights to drop. For head h, the weight of the edge at position p in the list of
/// target t is zero in the sum (but not in the denominator) if ActivationDraw(seed, first_target +
/// t, (p + 1) * heads + h) < dropped, else it is multiplied by `scale`. The own edge has position
/// -1.
struct AttendDropout {
  std::uint32_t dropped = 0;  ///< dropout probability times 2^32; 0: no dropout
  float scale = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_target = 0;
};

/// The running maximum is raised only to a score that exceeds it by more than this.
inline constexpr float kMaximumSlack = 8;

/// For each target t and head h, over the edges e in [begins[t], ends[t]) in order:
///
///   new = score[e, h] if that is larger than maximum + kMaximumSlack, else maximum;
///   r = exp(maximum - new); w = exp(score[e, h] - new); maximum = new;
///   denominator = denominator * r + w; out[t, h, :] = out[t, h, :] * r + w * x[index[e], h, :].
///
/// The slack avoids most of the rescaling (r is usually 1) and loses no precision: weights are
/// bounded by exp(kMaximumSlack).
///
/// The recurrence starts from -infinity, zero and zeros, or with `keep` from the contents of the
/// arrays, so that passing a list in pieces gives the same bits as passing it whole. With `finish`,
/// out[t, h, :] is then multiplied by 1 / denominator; a target without edges gets zeros. Strides
/// are in elements.
struct AttendArgs {
  AttendScore score = AttendScore::kAdditive;
  RowType type = RowType::kFloat32;
  /// rows of at least AttendParts(score) * heads * width columns, head after head
  const void* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t heads = 1;  ///< at most kMaxHeads
  std::size_t width = 0;  ///< columns per head
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* index = nullptr;
  std::uint32_t index_end = 0;    ///< as in SumArgs
  const float* source = nullptr;  ///< [rows of x, heads]; additive only
  std::size_t source_stride = 0;
  const float* query = nullptr;  ///< additive: [targets, heads], else [targets, heads * width]
  std::size_t query_stride = 0;
  const float* attention = nullptr;  ///< [heads, width]; additive-v2 only
  float slope = 0;

  /// Each target's own row, or null. It is the source of an edge before all others. Not with
  /// `keep`, and not with kDot.
  const float* own = nullptr;  ///< [targets, at least heads * width]
  std::size_t own_stride = 0;
  const float* own_source = nullptr;  ///< [targets, heads]; additive only
  std::size_t own_source_stride = 0;

  AttendDropout dropout;  ///< not with `keep`
  bool keep = false;
  bool finish = false;
  float* maximum = nullptr;      ///< [targets, heads]
  float* denominator = nullptr;  ///< [targets, heads]
  float* out = nullptr;          ///< [targets, heads * width]
  std::size_t out_stride = 0;
};

/// Collects the numbers of a target t that the backward pass needs next to each other, because that
/// pass visits targets in random order. For each head these are the maximum, 1 / denominator (0
/// without edges), the dot product of out and gradient, and for additive scores the query. Rows are
/// dense.
struct AttendStatsArgs {
  AttendScore score = AttendScore::kAdditive;
  std::size_t heads = 1;
  std::size_t width = 0;
  const float* maximum = nullptr;      ///< [targets, heads]
  const float* denominator = nullptr;  ///< [targets, heads]
  const float* query = nullptr;        ///< [targets, heads]; additive only
  const float* out = nullptr;          ///< [targets, heads * width], finished
  const float* gradient = nullptr;     ///< [targets, heads * width], with respect to `out`
  float* stats = nullptr;              ///< [targets, AttendStatsSize(score, heads)]
};
[[gnu::always_inline]] constexpr std::size_t AttendStatsSize(AttendScore score, std::size_t heads) {
  return (score == AttendScore::kAdditive ? 4 : 3) * heads;
}

/// Gradient of a finished `attend` over whole lists. `attend_source_gradient` computes the
/// gradients of the sources' rows, over the transposed lists, and stores the gradient of each
/// edge's score at the edge's position in the lists (for additive scores, the gradient of source +
/// query). `attend_query_gradient` then sums these over the lists. Both add to the gradient of
/// `attention`. Rows are dense and float32.
struct AttendGradientArgs {
  AttendScore score = AttendScore::kAdditive;
  std::size_t heads = 1;
  std::size_t width = 0;
  const float* x = nullptr;          ///< [sources, AttendParts(score) * heads * width]
  const float* source = nullptr;     ///< [sources, heads]; additive only
  const float* query = nullptr;      ///< [targets, heads * width]; not for additive scores
  const float* attention = nullptr;  ///< [heads, width]; additive-v2 only
  float slope = 0;
  /// Targets [0, own) have an own edge, from the source of the same number. 0 with kDot.
  std::size_t own = 0;
  std::size_t first_source = 0;  ///< number of the source that is row 0 here
  AttendDropout dropout;
  const float* stats = nullptr;
  const float* gradient = nullptr;  ///< [targets, heads * width]

  const std::uint32_t* begins = nullptr;  ///< the lists
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* index = nullptr;
  const std::uint32_t* transposed_begins = nullptr;  ///< their transpose, a TransposedCsr
  const std::uint32_t* turned_ends = nullptr;
  const std::uint32_t* target = nullptr;
  const std::uint32_t* edge = nullptr;
  std::uint32_t edge_count = 0;

  float* x_gradient = nullptr;       ///< shaped like x
  float* source_gradient = nullptr;  ///< [sources, heads]; additive only
  float* edge_gradient = nullptr;    ///< [edges, heads]
  float* own_gradient = nullptr;     ///< [own, heads], as edge_gradient, for own edges
  /// shaped like the query: [targets, heads] or [targets, heads * width]
  float* query_gradient = nullptr;
  float* attention_gradient = nullptr;  ///< [heads, width], added to; additive-v2 only
};

/// out[r, h] = the dot product of x[r, h, :] and vectors[h, :], with the partial sums of
/// EdgeDotArgs.
struct HeadDotsArgs {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t heads = 1;
  std::size_t width = 0;
  const float* vectors = nullptr;  ///< [heads, width]
  float* out = nullptr;            ///< [rows, heads]
};

/// x_gradient[r, h, :] = gradient[r, h] * vectors[h, :] (added to x_gradient with `keep`), and
/// vector_gradient[h, :] += gradient[r, h] * x[r, h, :], in order of r. Rows are dense and float32.
struct HeadDotsGradientArgs {
  const float* x = nullptr;  ///< [rows, heads * width]
  std::size_t heads = 1;
  std::size_t width = 0;
  const float* vectors = nullptr;   ///< [heads, width]
  const float* gradient = nullptr;  ///< [rows, heads]
  bool keep = false;
  float* x_gradient = nullptr;  ///< [rows, heads * width]; null if not needed
  float* vector_gradient = nullptr;
};

}  // namespace internal
}  // namespace rhizome
