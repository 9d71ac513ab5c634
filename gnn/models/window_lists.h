#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/block_plan.h"
#include "rhizome/gnn/tile_rows.h"

namespace rhizome::inline internal {

/// The lists of a block's targets, window by window, in which a row's number is its slot of the
/// stage.
/// Threads: each function may run for different targets at once.
/// Ownership: borrows `lists`.
class WindowLists {
 public:
  /// `weighs`: whether edges have weights.
  WindowLists(const BlockLists& lists, bool weighs);

  /// Returns the whole lists of some targets, for a block whose only window holds all rows, those
  /// of the targets too (BlockLists::numbers).
  TileLists Whole(const TargetRange& range) const;

  /// Returns the parts of the lists of some targets that are in a window of another block. Windows
  /// are numbered from the first that is reduced, and asked for in ascending order. The result is
  /// valid until the calling thread asks again, of whichever block.
  TileLists In(std::size_t window, const TargetRange& range);

 private:
  const BlockLists& lists_;
  const bool weighs_;
  std::vector<std::uint32_t> taken_;  // [targets]: end of the part of each list that was returned
};

}  // namespace rhizome::inline internal
