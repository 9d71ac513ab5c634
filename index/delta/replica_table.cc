#include "index/delta/replica_table.h"

namespace rhizome {
inline namespace internal {

namespace {

// Calls visit(row, local, list) for each boundary vertex with edges in this partition.
template <typename Visit>
void ForEachBoundary(const Adjacency& partition, Direction direction, Visit&& visit) {
  for (std::uint64_t i = 0; i < partition.vertex_count(); ++i) {
    const auto local = static_cast<LocalId>(i);
    if (partition.interior(local)) continue;
    const Adjacency::Range list = partition.Entries(local, direction);
    if (list.count == 0) continue;
    visit(static_cast<std::uint64_t>(partition.RowOf(local)), local, list);
  }
}

}  // namespace

ReplicaTable::ReplicaTable(std::span<const Adjacency> partitions, std::uint64_t rows,
                           Direction direction)
    : boundary_(rows) {
  for (const Adjacency& partition : partitions) {
    for (std::uint64_t i = 0; i < partition.owned_count(); ++i) {
      const auto local = static_cast<LocalId>(i);
      if (!partition.interior(local)) {
        boundary_.Set(static_cast<std::uint64_t>(partition.RowOf(local)));
      }
    }
  }
  boundary_.Seal();
  std::uint64_t boundary_count = 0;
  boundary_.ForEach([&](std::uint64_t) { ++boundary_count; });
  first_.resize(boundary_count + 1);
  for (const Adjacency& partition : partitions) Count(partition, direction);
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];

  parts_.resize(first_.back());
  std::vector<std::uint64_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    Fill(partitions[p], static_cast<PartitionId>(p), direction, next);
  }
}

void ReplicaTable::Count(const Adjacency& partition, Direction direction) {
  ForEachBoundary(partition, direction, [&](std::uint64_t row, LocalId, const Adjacency::Range&) {
    ++first_[boundary_.Rank(row) + 1];
  });
}

void ReplicaTable::Fill(const Adjacency& partition, PartitionId p, Direction direction,
                        std::vector<std::uint64_t>& next) {
  ForEachBoundary(
      partition, direction, [&](std::uint64_t row, LocalId local, const Adjacency::Range& list) {
        const std::uint64_t index = boundary_.Rank(row);
        const std::uint64_t slot = next[index]++;
        const std::uint64_t begin = slot == first_[index] ? 0 : parts_[slot - 1].end;
        parts_[slot] = {
            .end = begin + list.count, .first = list.first, .local = local, .partition = p};
      });
}

}  // namespace internal
}  // namespace rhizome
