#pragma once

#include <cstdint>
#include <span>

#include "rhizome/index/column.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/section_file.h"

namespace rhizome::inline internal {

/// The three sections of a patched column.
struct PatchedKinds {
  std::uint32_t values;
  std::uint32_t places;
  std::uint32_t patches;
};

/// Numbers of which most are small and a few are huge (degrees): a column of one or two bytes each,
/// in which the largest value says "look among the patches", found by binary search.
/// Format: storage/FORMAT.md, "Patched columns". Ownership: as Column. Threads: const.
class PatchedColumn {
 public:
  PatchedColumn() = default;

  /// Errors: kCorruption, with `name` in the message: patches that fit no mark, or are out of
  /// order, or would have fitted the column, or are above `largest`.
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
  Column places_;   // ascending: which of the values are marks
  Column patches_;  // what stands there
  std::uint64_t mark_ = UINT64_MAX;
};

/// Writes `values` in whichever width of 1 and 2 bytes takes fewer bytes.
Status WritePatched(SectionFileWriter& writer, const PatchedKinds& kinds,
                    std::span<const std::uint64_t> values);

}  // namespace rhizome::inline internal
