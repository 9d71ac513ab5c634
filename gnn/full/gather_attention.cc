#include "rhizome/gnn/gather_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

/// Adds the edge of a source to a target.
void Attend(const GatherHeads& heads, const float* source, float* state) {
  const std::size_t columns = heads.width / heads.heads;
  const std::size_t w = heads.width, h = heads.heads;
  for (std::size_t i = 0; i < h; ++i) {
    const float sum = source[w + i] + state[2 * w + 3 * h + i];
    const bool positive = sum > 0;
    const float score = positive ? sum : heads.slope * sum;
    float& most = state[2 * w + 2 * h + i];
    if (score > most) {
      const float scale = std::exp(most - score);
      most = score;
      state[2 * w + i] *= scale;
      state[2 * w + h + i] *= scale;
      for (std::size_t c = i * columns; c < (i + 1) * columns; ++c) {
        state[c] *= scale;
        state[w + c] *= scale;
      }
    }
    const float weight = std::exp(score - most);
    state[2 * w + (positive ? 0 : h) + i] += weight;
    float* const to = state + (positive ? 0 : w);
    for (std::size_t c = i * columns; c < (i + 1) * columns; ++c) to[c] += weight * source[c];
  }
}

/// Adds what comes back from a target to one of its sources.
void Return(const GatherHeads& heads, const float* target, float* state) {
  const std::size_t columns = heads.width / heads.heads;
  const std::size_t w = heads.width, h = heads.heads;
  const float* const z = state + w + 2 * h;
  const float* const s = z + w;
  for (std::size_t i = 0; i < h; ++i) {
    const float sum = s[i] + target[w + i];
    const bool positive = sum > 0;
    const float score = positive ? sum : heads.slope * sum;
    const float weight = std::exp(score - target[w + h + i]) * target[w + 2 * h + i];
    float product = 0;
    for (std::size_t c = i * columns; c < (i + 1) * columns; ++c) product += target[c] * z[c];
    const float mean = RHIZOME_MUTANT("gathered gradients forget that weights add up to 1")
                           ? 0
                           : target[w + 3 * h + i];
    state[w + i] += weight * (product - mean) * (positive ? 1 : heads.slope);
    for (std::size_t c = i * columns; c < (i + 1) * columns; ++c) state[c] += weight * target[c];
  }
}

/// Calls body(row of the window, state) for each edge of a window.
template <typename Body>
void ForEdges(const GatherWindow& window, std::size_t state_columns, float* state,
              const Body& body) {
  for (std::size_t t = 0; t < window.count; ++t, state += state_columns) {
    for (std::uint32_t e = window.lists.begins[t]; e < window.lists.ends[t]; ++e)
      body(window.x + window.lists.slots[e] * window.stride, state);
  }
}

}  // namespace

void BeginAttention(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  std::fill_n(state, 2 * w + 2 * h, 0.0F);
  std::fill_n(state + 2 * w + 2 * h, h, -std::numeric_limits<float>::infinity());
  std::copy_n(own + w + h, h, state + 2 * w + 3 * h);
  if (heads.own) Attend(heads, own, state);
}

void AddAttention(const GatherHeads& heads, const GatherWindow& window, float* state) {
  ForEdges(window, heads.gathered(), state,
           [&](const float* row, float* to) { Attend(heads, row, to); });
}

void BeginAttentionGradient(const GatherHeads& heads, const float* own, float* state) {
  const std::size_t w = heads.width, h = heads.heads;
  std::fill_n(state, w + h, 0.0F);
  std::copy_n(own + w + 4 * h, w + 2 * h, state + w + h);  // dq, z and s
  if (heads.own) Return(heads, own, state);
}

void AddAttentionGradient(const GatherHeads& heads, const GatherWindow& window, float* state) {
  ForEdges(window, AttentionGradientState(heads), state,
           [&](const float* row, float* to) { Return(heads, row, to); });
}

}  // namespace rhizome::inline internal
