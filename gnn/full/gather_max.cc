#include "rhizome/gnn/gather_max.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {

// Winners are bits in places of floats: they are copied, and never computed with.
static_assert(sizeof(float) == sizeof(std::uint32_t));

void BeginMaxima(std::size_t count, std::size_t width, float* state) {
  for (std::size_t t = 0; t < count; ++t, state += 2 * width) {
    std::fill_n(state, width, -std::numeric_limits<float>::infinity());
    std::fill_n(state + width, width, std::bit_cast<float>(kNoWinner));
  }
}

void AddMaxima(const GatherWindow& window, std::span<const std::uint32_t> rows, float* state) {
  const std::size_t width = window.width;
  for (std::size_t t = 0; t < window.count; ++t, state += 2 * width) {
    float* const most = state;
    float* const winner = state + width;
    for (std::uint32_t e = window.lists.begins[t]; e < window.lists.ends[t]; ++e) {
      const std::uint32_t slot = window.lists.slots[e];
      const float* const x = window.x + slot * window.stride;
      const auto row = std::bit_cast<float>(rows[slot]);
      for (std::size_t c = 0; c < width; ++c) {
        const bool nothing = std::bit_cast<std::uint32_t>(winner[c]) == kNoWinner;
        const bool is_nan = x[c] != x[c];
        const bool was_nan = most[c] != most[c];
        const bool more = nothing || x[c] > most[c] || (is_nan && !was_nan);
        most[c] = more ? x[c] : most[c];
        winner[c] = more ? row : winner[c];
      }
    }
  }
}

void EndMaxima(std::size_t count, std::size_t width, float* state) {
  for (std::size_t t = 0; t < count; ++t, state += 2 * width) {
    for (std::size_t c = 0; c < width; ++c)
      if (std::bit_cast<std::uint32_t>(state[width + c]) == kNoWinner) state[c] = 0;
  }
}

void AddMaxGradients(const GatherWindow& window, std::uint32_t first_row, float* out) {
  const std::size_t width = window.width;
  for (std::size_t t = 0; t < window.count; ++t, out += width) {
    const std::uint32_t row = first_row + static_cast<std::uint32_t>(t);
    const std::uint32_t begin = window.lists.begins[t];
    for (std::uint32_t e = begin; e < window.lists.ends[t]; ++e) {
      const std::uint32_t slot = window.lists.slots[e];
      const bool again = e > begin && window.lists.slots[e - 1] == slot;
      if (again && !RHIZOME_MUTANT("a maximum's gradient follows every parallel edge")) continue;
      const float* const gradient = window.x + slot * window.stride;
      const float* const winner = gradient + width;
      for (std::size_t c = 0; c < width; ++c)
        out[c] += std::bit_cast<std::uint32_t>(winner[c]) == row ? gradient[c] : 0.0F;
    }
  }
}

}  // namespace rhizome::inline internal
