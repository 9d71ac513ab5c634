#pragma once

#include <cstddef>

#include "rhizome/graph.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The directions whose lists a sampler traverses: one, or both, in which case the list of a vertex
/// is its out-list followed by its in-list. The partition number of an entry identifies its list:
/// numbers of the second direction follow the numbers of the first and of the first's delta. (A
/// symmetric graph has one list for both directions, which is traversed once.)
/// Threads: a value.
class WalkedSides {
 public:
  WalkedSides(const GraphSnapshot& graph, Direction direction)
      : first_(direction != Direction::kBoth ? direction
               : graph.info().symmetric      ? Direction::kIn
                                             : Direction::kOut),
        count_(direction == Direction::kBoth && !graph.info().symmetric ? 2 : 1),
        delta_(static_cast<PartitionId>(graph.partition_count())) {}

  std::size_t count() const { return count_; }
  Direction direction(std::size_t side) const { return side == 0 ? first_ : Direction::kIn; }

  /// Returns the number that is added to partition numbers of a side.
  PartitionId ShiftOf(std::size_t side) const {
    return side == 0 ? PartitionId{0} : static_cast<PartitionId>(delta_ + 1);
  }

  /// Returns the number of the delta's partition within a side.
  PartitionId delta() const { return delta_; }

  /// The three functions below accept the partition of an entry.
  std::size_t SideOf(PartitionId partition) const { return partition > delta_ ? 1 : 0; }
  PartitionId Within(PartitionId partition) const {
    return static_cast<PartitionId>(partition - ShiftOf(SideOf(partition)));
  }
  Direction DirectionOf(PartitionId partition) const { return direction(SideOf(partition)); }

 private:
  Direction first_;
  std::size_t count_;
  PartitionId delta_;
};

}  // namespace internal
}  // namespace rhizome
