#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/base/mix.h"

// Interface between the aggregation and its three sets of kernels (portable, AVX2, AVX-512). It
// uses plain pointers and no standard library: each set is compiled for a different instruction
// set, and an inline function shared between them could end up in the program in a form that not
// every machine can run.
//
// All sets give the same bits: each column is summed independently, in list order, in float32, and
// a product is rounded before it is added (never a fused multiply-add).

namespace rhizome {
inline namespace internal {

/// Element type of the rows that are read. Sums are always float32.
enum class RowType : std::uint8_t { kFloat32, kFloat16, kBfloat16 };
constexpr std::size_t BytesOf(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

/// out[t, :] = initial_scale[t] * initial[t, :]
///           + target_scale[t] * (sum over e in [begins[t], ends[t]), in order, of
///             source_scale[index[e]] * edge_weight[e] * x[index[e], :])
/// Null factors are ones. The initial row is added for t < initial_rows only. With `keep` the sum
/// starts from the contents of `out` instead of zero. Strides are in elements.
struct SumArgs {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* index = nullptr;
  std::uint32_t index_end = 0;  ///< edges below may be prefetched; 0: only edges of the same list
  const float* source_scale = nullptr;
  const float* edge_weight = nullptr;
  const float* target_scale = nullptr;
  const float* initial = nullptr;
  std::size_t initial_stride = 0;
  std::size_t initial_rows = 0;
  const float* initial_scale = nullptr;
  bool keep = false;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

/// out[t, :] = the maximum of x[index[e], :] in each column, and edge[t, :] the first e that
/// attains it; a NaN counts as larger than every number. An empty list gives zeros and kNoEdge.
/// With `keep` the maximum includes the contents of `out`, and an empty list leaves them unchanged.
/// Rows of `edge` have dim elements. `edge` may be null, and must be null with `keep`.
struct MaxArgs {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* index = nullptr;
  std::uint32_t index_end = 0;
  bool keep = false;
  float* out = nullptr;
  std::size_t out_stride = 0;
  std::uint32_t* edge = nullptr;
};
inline constexpr std::uint32_t kNoEdge = 0xFFFFFFFFU;

/// The gradient of a maximum, over the transposed lists: out[j, d] = sum over k in [begins[j],
/// ends[j]), in order, of gradient[target[k], d] where winner[target[k], d] is edge[k].
struct MaxGradientArgs {
  const float* gradient = nullptr;  // [targets, dim]
  const std::uint32_t* winner = nullptr;
  std::size_t dim = 0;
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* target = nullptr;
  const std::uint32_t* edge = nullptr;
  float* out = nullptr;
};

/// out[e] = the dot product of gradient[t, :] and x[index[e], :] for e in the list of t: the
/// gradient of a weighted sum with respect to its weights. It is computed in 16 partial sums,
/// column d in number d % 16, which are added as a fixed tree.
struct EdgeDotArgs {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  const std::uint32_t* begins = nullptr;
  const std::uint32_t* ends = nullptr;
  const std::uint32_t* index = nullptr;
  const float* gradient = nullptr;  // [targets, dim]
  float* out = nullptr;
};

/// Activation after a layer: out[r, c] = in[r, c], or zero if that is negative and `relu` is set.
/// With dropout the result becomes zero if ActivationDraw(seed, first_row + r, c) < dropped, else
/// it is multiplied by `scale`. `in` may equal `out`.
struct ActivateArgs {
  const float* in = nullptr;
  std::size_t in_stride = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
  std::size_t dim = 0;
  bool relu = false;
  std::uint32_t dropped = 0;  ///< dropout probability times 2^32; 0: no dropout
  float scale = 1;
  std::uint64_t seed = 0;
  std::uint64_t first_row = 0;
};

/// out[r, c] = gradient[r, c] * scale where result[r, c] > 0, else zero: the gradient through ReLU
/// and dropout together.
struct ActivateGradientArgs {
  const float* result = nullptr;
  const float* gradient = nullptr;  ///< rows of `result`, `gradient` and `out` have dim elements
  std::size_t dim = 0;
  float scale = 1;
  float* out = nullptr;
};

/// Constants of ActivationDraw, the dropout draw of a column: uniform in [0, 2^32), computed only
/// from the column and the two keys of its row (the halves of SplitMix64). It applies the mixing
/// function of Wellons' "lowbias32" twice.
inline constexpr std::uint32_t kColumnStep = 0x9e3779b9U;
inline constexpr std::uint32_t kMixA = 0x7feb352dU;
inline constexpr std::uint32_t kMixB = 0x846ca68bU;

// The arguments of attention are in attention_kernels.h.
struct AttendArgs;
struct AttendStatsArgs;
struct AttendGradientArgs;
struct HeadDotsArgs;
struct HeadDotsGradientArgs;

/// A set of kernels. Each function computes rows [begin, end) of its output.
struct AggregateKernels {
  void (*sum)(const SumArgs&, std::size_t begin, std::size_t end);
  void (*max)(const MaxArgs&, std::size_t begin, std::size_t end);
  void (*max_gradient)(const MaxGradientArgs&, std::size_t begin, std::size_t end);
  void (*edge_dot)(const EdgeDotArgs&, std::size_t begin, std::size_t end);
  void (*activate)(const ActivateArgs&, std::size_t begin, std::size_t end);
  void (*activate_gradient)(const ActivateGradientArgs&, std::size_t begin, std::size_t end);
  /// out[i] = in[i] for i < count, converted to float32 exactly.
  void (*widen)(RowType type, const void* in, std::size_t count, float* out);
  void (*attend)(const AttendArgs&, std::size_t begin, std::size_t end);
  void (*attend_stats)(const AttendStatsArgs&, std::size_t begin, std::size_t end);
  void (*attend_source_gradient)(const AttendGradientArgs&, std::size_t begin, std::size_t end);
  void (*attend_query_gradient)(const AttendGradientArgs&, std::size_t begin, std::size_t end);
  void (*head_dots)(const HeadDotsArgs&, std::size_t begin, std::size_t end);
  void (*head_dots_gradient)(const HeadDotsGradientArgs&, std::size_t begin, std::size_t end);
};

extern const AggregateKernels kPortableKernels;
#if defined(__x86_64__)
extern const AggregateKernels kAvx2Kernels;
extern const AggregateKernels kAvx512Kernels;
#endif

}  // namespace internal
}  // namespace rhizome
