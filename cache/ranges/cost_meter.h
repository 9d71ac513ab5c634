#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Positions [begin, end) of a pass, and the processor time of computing them.
struct MeasuredRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  double cpu_seconds = 0;
};

/// Collects the costs of blocks as ranges whose ends are multiples of a step. A block that ends
/// elsewhere, or has fewer positions than a range should have, is merged with the next.
/// Threads: one at a time.
class CostMeter {
 public:
  /// `min_places`: minimum size of a range, unless it is followed by a gap or the end.
  CostMeter(std::uint64_t step, std::uint64_t min_places) : step_(step), min_places_(min_places) {}

  /// Adds a block. Blocks must be in ascending order. A gap between blocks must begin at a multiple
  /// of the step; it starts a new range.
  void Add(const MeasuredRange& block);

  /// Returns the ranges. The last one ends where the last block ended.
  const std::vector<MeasuredRange>& ranges() const { return ranges_; }

 private:
  std::uint64_t step_;
  std::uint64_t min_places_;
  std::vector<MeasuredRange> ranges_;
};

}  // namespace internal
}  // namespace rhizome
