#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rhizome/types.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// Counts the edges of each vertex in each partition. A vertex of degree d is in at most d
/// partitions, so it gets min(d, partitions) slots: the memory grows with the edges, not with
/// vertices times partitions. If a vertex has a slot for each partition, the partition is the
/// index; shorter lists are searched.
template <typename Index>
class ReplicaCounts {
 public:
  /// `degree(v)` is an upper bound on the edges of vertex v.
  template <typename Degree>
  ReplicaCounts(std::uint64_t vertices, std::uint32_t partitions, Degree&& degree)
      : partitions_(partitions), first_(static_cast<std::size_t>(vertices) + 1) {
    for (std::size_t v = 0; v < vertices; ++v) {
      const std::uint64_t slots = std::min<std::uint64_t>(degree(v), partitions);
      first_[v + 1] = first_[v] + slots;
    }
    part_.resize(first_.back(), kFree);
    count_.resize(first_.back());
  }

  Index Count(std::uint64_t vertex, PartitionId p) const {
    const std::uint64_t slot = Find(vertex, p);
    return slot == first_[vertex + 1] ? Index{0} : count_[slot];
  }

  /// Increment and Decrement return the new count.
  Index Increment(std::uint64_t vertex, PartitionId p) {
    const std::uint64_t end = first_[vertex + 1];
    std::uint64_t slot = Find(vertex, p);
    if (slot == end) slot = FreeSlot(vertex);
    part_[slot] = p;
    return ++count_[slot];
  }
  Index Decrement(std::uint64_t vertex, PartitionId p) {
    const std::uint64_t slot = Find(vertex, p);
    RHIZOME_DCHECK(slot < first_[vertex + 1] && count_[slot] != 0);
    if (--count_[slot] == 0) part_[slot] = kFree;
    return count_[slot];
  }

  /// Calls visit(p, count) for each partition with edges of the vertex.
  template <typename Visit>
  void ForEach(std::uint64_t vertex, Visit&& visit) const {
    for (std::uint64_t slot = first_[vertex]; slot < first_[vertex + 1]; ++slot) {
      if (count_[slot] != 0) visit(part_[slot], count_[slot]);
    }
  }

 private:
  static constexpr PartitionId kFree = 0xFFFF;

  bool indexed(std::uint64_t vertex) const {
    return first_[vertex + 1] - first_[vertex] == partitions_;
  }
  std::uint64_t Find(std::uint64_t vertex, PartitionId p) const {
    if (indexed(vertex)) return first_[vertex] + p;
    std::uint64_t slot = first_[vertex];
    while (slot < first_[vertex + 1] && part_[slot] != p) ++slot;
    return slot;
  }
  // A free slot always exists: a vertex in as many partitions as it has edges has one edge in each,
  // and a caller that moves an edge decrements first.
  std::uint64_t FreeSlot(std::uint64_t vertex) const {
    std::uint64_t slot = first_[vertex];
    while (part_[slot] != kFree) ++slot;
    RHIZOME_DCHECK(slot < first_[vertex + 1]);
    return slot;
  }

  std::uint32_t partitions_;
  std::vector<std::uint64_t> first_;  // [vertices + 1]
  std::vector<PartitionId> part_;     // [slots]
  std::vector<Index> count_;          // [slots]
};

}  // namespace internal
}  // namespace rhizome
