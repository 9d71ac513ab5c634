#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// In which order rows stand in an array that lies between two layers, and in which they are
/// computed: a permutation, or nothing where they stand as the store's rows do; or some rows only,
/// where the array has no others. Threads: const.
class RowOrder {
 public:
  RowOrder() = default;

  /// `row_at`: the row at each place, every row at most once; of `rows` that there are.
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

  /// Memory of an order of so many rows.
  static std::uint64_t Bytes(std::uint64_t rows) { return rows * 2 * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> row_at_;
  std::vector<std::uint32_t> place_of_;
};

}  // namespace internal
}  // namespace rhizome
