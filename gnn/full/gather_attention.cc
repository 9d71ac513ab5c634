#include "rhizome/gnn/gather_attention.h"

#include <algorithm>
#include <limits>

#include "rhizome/cache/simd.h"

namespace rhizome::inline internal {

void BeginAttention(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  std::fill_n(state, 2 * w + 2 * h, 0.0F);
  std::fill_n(state + 2 * w + 2 * h, h, -std::numeric_limits<float>::infinity());
  std::copy_n(own + w + h, h, state + 2 * w + 3 * h);
}

void AddAttention(const GatherHeads& heads, const GatherWindow& window,
                  const GatherNumbers& numbers, float* state) {
  Gathers().attend({.rows = window.rows(),
                    .heads = heads.heads,
                    .width = heads.width / heads.heads,
                    .slope = heads.slope,
                    .state = state,
                    .dropout = heads.dropout,
                    .numbers = numbers},
                   0, window.count);
}

void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  std::fill_n(state, w + h, 0.0F);
  std::copy_n(own + w + 4 * h, w + 2 * h, state + w + h);  // dq, z and s
}

void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window,
                          const GatherNumbers& numbers, float* state) {
  Gathers().attend_gradient({.rows = window.rows(),
                             .heads = heads.heads,
                             .width = heads.width / heads.heads,
                             .slope = heads.slope,
                             .state = state,
                             .dropout = heads.dropout,
                             .numbers = numbers},
                            0, window.count);
}

}  // namespace rhizome::inline internal
