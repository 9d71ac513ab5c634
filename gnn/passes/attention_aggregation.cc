#include "gnn/passes/attention_aggregation.h"

#include <algorithm>
#include <limits>

#include "cache/kernels/simd.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns the arguments that all kernels have in common.
template <typename Args>
Args AttendingArgs(const GatherHeads& heads, const GatherWindow& window,
                   const GatherNumbers& numbers, float* state) {
  Args args;
  args.rows = window.rows();
  args.heads = heads.heads;
  args.width = heads.width / heads.heads;
  args.slope = heads.slope;
  args.state = state;
  args.dropout = heads.dropout;
  args.numbers = numbers;
  if constexpr (requires { args.vectors; }) args.vectors = heads.vectors;
  return args;
}

}  // namespace

void BeginAttention(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  // Sums and weights of all edges (GATv2), or of edges above and below zero separately; then maxima
  // and the query.
  const std::size_t sums = heads.second() ? w + h : 2 * w + 2 * h;
  std::fill_n(state, sums, 0.0F);
  std::fill_n(state + sums, h, -std::numeric_limits<float>::infinity());
  if (heads.second()) {
    std::copy_n(own + w, w, state + sums + h);
  } else {
    std::copy_n(own + w + h, h, state + sums + h);
  }
}

void AddAttention(const GatherHeads& heads, const GatherWindow& window,
                  const GatherNumbers& numbers, float* state) {
  if (heads.second()) {
    Gathers().attend_v2(AttendingArgs<GatherAttendV2Args>(heads, window, numbers, state), 0,
                        window.count);
  } else {
    Gathers().attend(AttendingArgs<GatherAttendArgs>(heads, window, numbers, state), 0,
                     window.count);
  }
}

void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  if (heads.second()) {
    std::fill_n(state, 2 * w, 0.0F);
    std::copy_n(own + 2 * w + 3 * h, w, state + 2 * w);  // z
    return;
  }
  std::fill_n(state, w + h, 0.0F);
  std::copy_n(own + w + 4 * h, w + 2 * h, state + w + h);  // dq, z and s
}

void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window,
                          const GatherNumbers& numbers, float* state) {
  if (heads.second()) {
    Gathers().attend_v2_gradient(
        AttendingArgs<GatherAttendV2GradientArgs>(heads, window, numbers, state), 0, window.count);
  } else {
    Gathers().attend_gradient(
        AttendingArgs<GatherAttendGradientArgs>(heads, window, numbers, state), 0, window.count);
  }
}

void BeginQueryGradient(const GatherHeads& heads, const float* own, float* state) {
  std::fill_n(state, heads.width, 0.0F);
  std::copy_n(own, 2 * heads.width + 3 * heads.heads, state + heads.width);  // all columns except z
}

void AddQueryGradient(const GatherHeads& heads, const GatherWindow& window,
                      const GatherNumbers& numbers, float* state) {
  Gathers().attend_v2_query_gradient(
      AttendingArgs<GatherAttendV2GradientArgs>(heads, window, numbers, state), 0, window.count);
}

}  // namespace internal
}  // namespace rhizome
