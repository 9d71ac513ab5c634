#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// The boundary of a growing partition, ordered by fewest unassigned edges. It consists of buckets
/// of vertices with similar counts (exact below 8, then two buckets for each power of two). Counts
/// only fall, but a vertex remains in the bucket of its count at Push or at the last Refresh, so
/// that other partitions never write to this queue.
template <typename Index>
class BoundaryQueue {
 public:
  static std::size_t BucketOf(Index free_edges) {
    if (free_edges < 8) return static_cast<std::size_t>(free_edges);
    const auto width = static_cast<std::size_t>(std::bit_width(free_edges));
    return 8 + 2 * (width - 4) + static_cast<std::size_t>(free_edges >> (width - 2) & 1);
  }

  void Push(Index vertex, Index free_edges) {
    const std::size_t bucket = BucketOf(free_edges);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    buckets_[bucket].push_back(vertex);
    first_ = std::min(first_, bucket);
    ++size_;
  }

  /// Removes a vertex that still has unassigned edges from the lowest non-empty bucket; returns
  /// false if there is none. `free_edges(v)` returns the current count.
  template <typename FreeEdges>
  bool Pop(Index& vertex, FreeEdges&& free_edges) {
    for (; first_ < buckets_.size(); ++first_) {
      std::vector<Index>& bucket = buckets_[first_];
      while (!bucket.empty()) {
        RHIZOME_DCHECK(size_ != 0);
        vertex = bucket.back();
        bucket.pop_back();
        --size_;
        if (free_edges(vertex) != 0) return true;
      }
    }
    RHIZOME_DCHECK(size_ == 0);
    return false;
  }

  /// Moves every vertex to the bucket of its current count; drops those without unassigned edges.
  template <typename FreeEdges>
  void Refresh(FreeEdges&& free_edges) {
    std::vector<std::vector<Index>> old = std::exchange(buckets_, {});
    first_ = 0;
    size_ = 0;
    for (std::vector<Index>& bucket : old) {
      for (const Index vertex : bucket) {
        if (const Index count = free_edges(vertex); count != 0) Push(vertex, count);
      }
      bucket = {};
    }
  }

  std::uint64_t size() const { return size_; }

 private:
  std::vector<std::vector<Index>> buckets_;
  std::size_t first_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace internal
}  // namespace rhizome
