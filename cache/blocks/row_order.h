#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The order of the rows in an array between two layers, in which they are also computed: a
/// permutation of the store's rows, or empty for the stored order. It may cover only some rows if
/// the array has no others.
/// Threads: const functions from any number of threads.
class RowOrder {
 public:
  RowOrder() = default;

  /// `row_at` is the row at each position, every row at most once; the store has `rows` rows.
  RowOrder(std::vector<std::uint32_t> row_at, std::uint64_t rows)
      : row_at_(std::move(row_at)), place_of_(rows) {
    for (std::size_t place = 0; place < row_at_.size(); ++place) {
      place_of_[row_at_[place]] = static_cast<std::uint32_t>(place);
    }
  }

  bool as_stored() const { return row_at_.empty(); }
  std::span<const std::uint32_t> row_at() const { return row_at_; }

  Row RowAt(std::uint64_t place) const {
    return as_stored() ? static_cast<Row>(place) : static_cast<Row>(row_at_[place]);
  }
  std::uint64_t PlaceOf(Row row) const {
    const auto at = static_cast<std::uint64_t>(row);
    return as_stored() ? at : place_of_[at];
  }

  /// Returns the memory of an order of `rows` rows in bytes.
  static std::uint64_t Bytes(std::uint64_t rows) { return rows * 2 * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> row_at_;
  std::vector<std::uint32_t> place_of_;
};

}  // namespace internal
}  // namespace rhizome
