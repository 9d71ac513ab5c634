#include "gnn/passes/max_aggregation.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "cache/kernels/simd.h"

namespace rhizome {
inline namespace internal {

// Winners are row numbers stored as the bits of floats. They are copied, never computed with.
static_assert(sizeof(float) == sizeof(std::uint32_t));

GatherRows GatherWindow::rows() const {
  GatherRows rows{.x = x, .stride = stride};
  lists.WalkedBy(rows);
  return rows;
}

void BeginMaxima(std::size_t count, std::size_t width, float* state) {
  for (std::size_t t = 0; t < count; ++t, state += 2 * width) {
    std::fill_n(state, width, -std::numeric_limits<float>::infinity());
    std::fill_n(state + width, width, std::bit_cast<float>(kNoWinner));
  }
}

void AddMaxima(const GatherWindow& window, std::span<const std::uint32_t> rows, float* state) {
  Gathers().max({.rows = window.rows(), .dim = window.width, .number = rows.data(), .state = state},
                0, window.count);
}

void EndMaxima(std::size_t count, std::size_t width, float* state) {
  for (std::size_t t = 0; t < count; ++t, state += 2 * width) {
    for (std::size_t c = 0; c < width; ++c)
      if (std::bit_cast<std::uint32_t>(state[width + c]) == kNoWinner) state[c] = 0;
  }
}

void AddMaxGradients(const GatherWindow& window, std::uint32_t first_row, float* out) {
  Gathers().max_gradient(
      {.rows = window.rows(), .dim = window.width, .first_target = first_row, .out = out}, 0,
      window.count);
}

}  // namespace internal
}  // namespace rhizome
