#pragma once

#include <cstdint>

#include "rhizome/policy.h"
#include "storage/array/read_cost.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

inline constexpr CacheKey kNoRow = -1;

/// Cost of a sweep over sorted rows. Rows that are close together on disk are read together,
/// including the gap between them.
class Sweep {
 public:
  Sweep(std::uint64_t row_bytes, const ReadCost& cost)
      : row_bytes_(static_cast<double>(row_bytes)),
        fixed_(cost.seconds_per_read),
        row_(cost.SecondsFor(row_bytes)),
        gap_bytes_(cost.gap_bytes()) {}

  /// Returns the seconds for reading `row` after `before`, the previous row of the sweep, or
  /// kNoRow.
  double SecondsAfter(CacheKey before, CacheKey row) const {
    return row_ + (Joined(before, row) ? Between(before, row) * row_ : fixed_);
  }

  bool Joined(CacheKey before, CacheKey row) const {
    return before != kNoRow && Between(before, row) * row_bytes_ <= static_cast<double>(gap_bytes_);
  }

  /// Returns the seconds that reading `row` adds to a sweep that reads `before` and `after` in any
  /// case.
  double SecondsMore(CacheKey before, CacheKey row, CacheKey after) const {
    const double with = SecondsAfter(before, row);
    return after == kNoRow ? with : with + SecondsAfter(row, after) - SecondsAfter(before, after);
  }

  double most() const { return fixed_ + row_; }

 private:
  static double Between(CacheKey before, CacheKey row) {
    RHIZOME_DCHECK(before < row);
    return static_cast<double>(row - before - 1);
  }

  const double row_bytes_;
  const double fixed_;
  const double row_;
  const std::uint64_t gap_bytes_;
};

}  // namespace internal
}  // namespace rhizome
