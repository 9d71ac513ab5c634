#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Places [begin, end) of a pass, and the processor time that computing them took.
struct MeasuredRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  double cpu_seconds = 0;
};

/// Collects what blocks of places cost, as ranges whose ends are multiples of a step: blocks that
/// end elsewhere go together with the next, and so do blocks of fewer places than a range should
/// have. Threads: one at a time.
class CostMeter {
 public:
  /// `least_places`: of a range, unless a gap or the end follows it.
  CostMeter(std::uint64_t step, std::uint64_t least_places)
      : step_(step), least_places_(least_places) {}

  /// Adds a block. Blocks ascend; after a gap, which begins at a multiple of the step, another
  /// range begins.
  void Add(const MeasuredRange& block);

  /// Returns the ranges; the last one ends where the last block did.
  const std::vector<MeasuredRange>& ranges() const { return ranges_; }

 private:
  std::uint64_t step_;
  std::uint64_t least_places_;
  std::vector<MeasuredRange> ranges_;
};

}  // namespace internal
}  // namespace rhizome
