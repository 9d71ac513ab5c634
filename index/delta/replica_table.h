#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/topology/adjacency.h"
#include "index/topology/rank_bitmap.h"

namespace rhizome {
inline namespace internal {

/// The partitions that hold edges of each boundary vertex, for one direction. It saves a sampler a
/// binary search among each partition's mirrors for every hub.
/// Memory: 3 bits a vertex, 8 bytes a boundary vertex, 24 bytes for each of its replicas.
/// Threads: const after construction.
class ReplicaTable {
 public:
  /// One partition's part of a vertex's list. The whole list is the concatenation of its parts.
  struct Part {
    std::uint64_t end = 0;    ///< end in the whole list; the part begins at the previous end
    std::uint64_t first = 0;  ///< position in the partition's array of neighbours
    LocalId local = 0;
    PartitionId partition = 0;
  };

  /// `partitions` are all partitions of a generation, used only during the call. `rows` is the
  /// bound of rows, including rows of new vertices.
  ReplicaTable(std::span<const Adjacency> partitions, std::uint64_t rows, Direction direction);

  bool boundary(Row row) const { return boundary_.Test(static_cast<std::uint64_t>(row)); }

  /// Returns the index of a boundary row among the boundary rows, and prefetches the data for At.
  std::uint64_t IndexOf(Row row) const {
    const std::uint64_t index = boundary_.Rank(static_cast<std::uint64_t>(row));
    __builtin_prefetch(&first_[index]);
    return index;
  }

  /// Returns the parts of the boundary vertex at `index`, and prefetches the first; empty if it has
  /// no edge of this direction.
  std::span<const Part> At(std::uint64_t index) const {
    const std::uint64_t first = first_[index];
    __builtin_prefetch(parts_.data() + first);
    return std::span(parts_).subspan(first, first_[index + 1] - first);
  }

 private:
  void Count(const Adjacency& partition, Direction direction);
  void Fill(const Adjacency& partition, PartitionId p, Direction direction,
            std::vector<std::uint64_t>& next);

  RankBitmap boundary_;               // by row
  std::vector<std::uint64_t> first_;  // [boundary vertices + 1]
  std::vector<Part> parts_;
};

}  // namespace internal
}  // namespace rhizome
