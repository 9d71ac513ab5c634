#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Adds the gradients of pairs to the rows that they belong to. The gradients of a row are added in
/// ascending order of the pairs, so that the sums have the same bits for any number of threads.
/// Memory: 4 bytes for each pair and each row.
/// Threads: const after construction.
class GradientSums {
 public:
  /// Pair i belongs to row row_of_pair[i], below `rows`.
  GradientSums(std::span<const std::uint32_t> row_of_pair, std::size_t rows);

  /// Sets `sums`, shape [rows, dim], to the sums of `gradients`, shape [pairs, dim]; zeros for rows
  /// without a pair.
  void Add(std::span<const float> gradients, std::size_t dim, std::span<float> sums) const;

 private:
  std::vector<std::uint32_t> first_;  // [rows + 1]
  std::vector<std::uint32_t> pairs_;  // by row, ascending
};

}  // namespace internal
}  // namespace rhizome
