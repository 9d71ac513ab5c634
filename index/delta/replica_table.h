#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/rank_bitmap.h"

namespace rhizome::inline internal {

/// Where the edges of the boundary vertices are: for each, the partitions that hold edges of one
/// direction. Saves a sampler one binary search in each partition's mirrors for every hub it draws
/// for. Memory: 3 bits a vertex, 8 bytes a boundary vertex, 24 bytes a replica of one.
/// Threads: const after construction.
class ReplicaTable {
 public:
  /// What one partition holds of a vertex's list. The whole list is its parts one after another.
  struct Part {
    std::uint64_t end = 0;    ///< in the whole list; the part begins where the one before it ends
    std::uint64_t first = 0;  ///< where it begins in the partition's array of neighbours
    LocalId local = 0;
    PartitionId partition = 0;
  };

  /// `partitions`: all of a generation, read here only; `rows`: bound of the rows, those of new
  /// vertices among them.
  ReplicaTable(std::span<const Adjacency> partitions, std::uint64_t rows, Direction direction);

  bool boundary(Row row) const { return boundary_.Test(static_cast<std::uint64_t>(row)); }

  /// Where a boundary row stands among the boundary rows; starts to fetch what At needs.
  std::uint64_t IndexOf(Row row) const {
    const std::uint64_t index = boundary_.Rank(static_cast<std::uint64_t>(row));
    __builtin_prefetch(&first_[index]);
    return index;
  }

  /// The parts of the boundary vertex at `index`, whose first starts to be fetched; empty if it has
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

}  // namespace rhizome::inline internal
