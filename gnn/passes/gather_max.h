#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/cache/gather_kernels.h"
#include "rhizome/gnn/tile_rows.h"

namespace rhizome::inline internal {

/// The rows of a window that are gathered, and the lists that say for which targets.
/// Ownership: borrows all.
struct GatherWindow {
  const float* x = nullptr;  ///< of slot 0
  std::size_t stride = 0;    ///< floats from a slot's row to the next
  std::size_t width = 0;     ///< columns that are gathered
  TileLists lists;           ///< of some targets, whose neighbours are slots, ascending
  std::size_t count = 0;     ///< targets

  GatherRows rows() const;
};

/// Lets maxima begin: `state` is [count, 2 * width], the maxima and, as bits, the rows that attain
/// them.
void BeginMaxima(std::size_t count, std::size_t width, float* state);

/// Takes the maximum of `state` and of a window in each column (GatherMaxArgs). `rows`: of the
/// slots.
void AddMaxima(const GatherWindow& window, std::span<const std::uint32_t> rows, float* state);

/// Turns the maximum over nothing into zeros.
void EndMaxima(std::size_t count, std::size_t width, float* state);

/// Adds to out [count, width] the gradients of the maxima that a row attains: those of a window's
/// rows [gradients | winners] whose winner is the target, which is row `first_row` and those after
/// it (GatherMaxGradientArgs).
void AddMaxGradients(const GatherWindow& window, std::uint32_t first_row, float* out);

}  // namespace rhizome::inline internal
