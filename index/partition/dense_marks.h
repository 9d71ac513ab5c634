#pragma once

#include <cstdint>
#include <vector>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// Records which ids have been seen, to determine whether they cover 0..bound-1. Ids below
/// `implied` count as seen. Memory: one bit for each other id.
class DenseMarks {
 public:
  DenseMarks(std::uint64_t bound, std::uint64_t implied)
      : implied_(implied), missing_(bound - implied), seen_(bound - implied) {
    RHIZOME_DCHECK(implied <= bound);
  }

  /// `id` must be in [0, bound).
  void Mark(std::int64_t id) {
    RHIZOME_DCHECK(id >= 0 && static_cast<std::uint64_t>(id) < implied_ + seen_.size());
    if (static_cast<std::uint64_t>(id) < implied_) return;
    auto known = seen_[static_cast<std::uint64_t>(id) - implied_];
    RHIZOME_DCHECK(known || missing_ != 0);
    if (!known) --missing_;
    known = true;
  }
  bool complete() const { return missing_ == 0; }

  /// Returns the number of ids in 0..bound-1 that have not been seen.
  std::uint64_t missing() const { return missing_; }

 private:
  const std::uint64_t implied_;
  std::uint64_t missing_;
  std::vector<bool> seen_;
};

}  // namespace internal
}  // namespace rhizome
