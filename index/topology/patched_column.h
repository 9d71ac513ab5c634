#pragma once

#include <cstdint>
#include <span>

#include "index/topology/column.h"
#include "rhizome/status.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// The section kinds of a patched column.
struct PatchedKinds {
  std::uint32_t values;
  std::uint32_t places;
  std::uint32_t patches;
};

/// A column of numbers that are mostly small, with a few huge ones (degrees). An element takes one
/// or two bytes. The largest value of that width marks a number that is stored among the patches,
/// where a binary search finds it. Format: storage/FORMAT.md, "Patched columns".
/// Ownership: as Column.
/// Threads: const.
class PatchedColumn {
 public:
  PatchedColumn() = default;

  /// Errors: kCorruption, naming `name`: a patch has no mark, is out of order, would have fitted
  /// the column, or is above `largest`. The values of a paged file are not checked.
  static Result<PatchedColumn> Read(const SectionFile& file, const PatchedKinds& kinds,
                                    std::uint64_t count, std::uint64_t largest, const char* name);

  std::uint64_t operator[](std::size_t i) const {
    const std::uint64_t value = values_[i];
    if (value != mark_) [[likely]]
      return value;
    return patches_[places_.LowerBound(0, places_.size(), i)];
  }
  std::size_t size() const { return values_.size(); }

 private:
  Column values_;   // [count]
  Column places_;   // ascending: positions of the marks in values_
  Column patches_;  // the values at these positions
  std::uint64_t mark_ = UINT64_MAX;
};

/// Writes `values` with 1 or 2 bytes each, choosing the width with the smaller total size.
Status WritePatched(SectionFileWriter& writer, const PatchedKinds& kinds,
                    std::span<const std::uint64_t> values);

}  // namespace internal
}  // namespace rhizome
