#pragma once

#include <cstdint>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "gnn/models/tile_rows.h"

namespace rhizome {
inline namespace internal {

/// The neighbour lists of a block's targets, window by window. A row's number in them is its slot
/// of the stage. If the lists are grouped by relation, each group takes the place of a target.
/// Threads: each function may run concurrently for different targets.
/// Ownership: borrows `lists`.
class WindowLists {
 public:
  /// `weighs`: whether edges have weights.
  WindowLists(const BlockLists& lists, bool weighs);

  /// Returns the whole lists of some targets, for a block whose only window holds all rows,
  /// including the targets' own (BlockLists::numbers).
  TileLists Whole(const TargetRange& range) const;

  /// Returns the parts of the lists of some targets that are in a window, for a block of several
  /// windows. Windows are numbered from the first one that is reduced, and must be requested in
  /// ascending order. The result is valid until the next call of the calling thread, for any block.
  TileLists In(std::size_t window, const TargetRange& range);

 private:
  const BlockLists& lists_;
  const bool weighs_;
  std::vector<std::uint32_t>
      taken_;  // [targets or groups]: end of the last returned part of each list
};

}  // namespace internal
}  // namespace rhizome
