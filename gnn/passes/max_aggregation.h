#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/kernels/gather_kernels.h"
#include "gnn/models/tile_rows.h"

namespace rhizome {
inline namespace internal {

/// The rows of a window to be aggregated, and the lists that assign them to targets.
/// Ownership: borrows all.
struct GatherWindow {
  const float* x = nullptr;  ///< the row in slot 0
  std::size_t stride = 0;    ///< floats from a slot's row to the next
  std::size_t width = 0;     ///< columns that are aggregated
  TileLists lists;           ///< lists of some targets; neighbours are slots, ascending
  std::size_t count = 0;     ///< number of targets

  GatherRows rows() const;
};

/// Initialises maxima. `state` is [count, 2 * width]: the maxima, then the numbers of the rows that
/// attain them, as bits.
void BeginMaxima(std::size_t count, std::size_t width, float* state);

/// Sets each column of `state` to the maximum of itself and a window's rows (GatherMaxArgs).
/// `rows`: row numbers of the slots.
void AddMaxima(const GatherWindow& window, std::span<const std::uint32_t> rows, float* state);

/// Replaces maxima over no rows with zeros.
void EndMaxima(std::size_t count, std::size_t width, float* state);

/// Adds the gradients of the maxima that each target attains to out [count, width]: from the rows
/// [gradients | winners] of a window, those whose winner is the target (GatherMaxGradientArgs).
/// `first_row`: row number of the first target.
void AddMaxGradients(const GatherWindow& window, std::uint32_t first_row, float* out);

}  // namespace internal
}  // namespace rhizome
