#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/storage/check.h"

namespace rhizome {

/// Which ids have been seen, to learn whether they are all of 0..bound-1; those below `implied` are
/// there without being named. Memory: a bit for each of the others.
class DenseMarks {
 public:
  DenseMarks(std::uint64_t bound, std::uint64_t implied)
      : implied_(implied), missing_(bound - implied), seen_(bound - implied) {
    RHIZOME_DCHECK(implied <= bound);
  }

  /// `id` is in [0, bound).
  void Mark(std::int64_t id) {
    RHIZOME_DCHECK(id >= 0 && static_cast<std::uint64_t>(id) < implied_ + seen_.size());
    if (static_cast<std::uint64_t>(id) < implied_) return;
    auto known = seen_[static_cast<std::uint64_t>(id) - implied_];
    RHIZOME_DCHECK(known || missing_ != 0);
    if (!known) --missing_;
    known = true;
  }
  bool complete() const { return missing_ == 0; }

 private:
  const std::uint64_t implied_;
  std::uint64_t missing_;
  std::vector<bool> seen_;
};

}  // namespace rhizome
