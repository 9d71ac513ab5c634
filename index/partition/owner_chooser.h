#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rhizome/types.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

inline constexpr PartitionId kNoOwner = 0xFFFF;

/// Returns the partition that clearly holds most edges of a vertex, or kNoOwner: a partition with
/// at least kTieShare of the largest count is as good an owner as the largest, because reads of the
/// vertex from other partitions grow by at most a fifth of that count. `for_each(visit)` calls
/// visit(p, count) for each partition with edges of the vertex, ascending.
template <typename Index, typename ForEachCount>
PartitionId ClearMajority(ForEachCount for_each) {
  constexpr double kTieShare = 0.8;
  Index most = 0;
  PartitionId best = kNoOwner;
  for_each([&](PartitionId p, Index count) {
    if (count <= most) return;
    most = count;
    best = p;
  });
  std::uint32_t ties = 0;
  for_each([&](PartitionId, Index count) {
    ties += static_cast<double>(count) >= kTieShare * static_cast<double>(most);
  });
  return ties == 1 ? best : kNoOwner;
}

/// Chooses the owner of each vertex. Vertices with the fewest candidates choose first, so that
/// those with more candidates can even out the rows: vertices that must keep their owner; interior
/// vertices; boundary vertices with a clear majority; ties and hubs (in at least half of the
/// partitions); isolated vertices.
///
/// View provides ForEachPartition(v, visit(p)) over the partitions of a vertex; Majority(v), the
/// partition that clearly holds most of its edges, or kNoOwner; and optionally Kept(v), the
/// partition that must remain the owner of v, or kNoOwner.
template <typename View>
class OwnerChooser {
 public:
  OwnerChooser(View view, std::uint64_t vertex_count, std::uint32_t partitions)
      : view_(std::move(view)),
        partitions_(partitions),
        // A partition with this many rows no longer receives vertices by majority.
        share_((vertex_count + partitions - 1) / partitions),
        owner_(static_cast<std::size_t>(vertex_count), kNoOwner),
        rows_(partitions) {}

  std::vector<PartitionId> Choose() {
    for (std::size_t v = 0; v < owner_.size(); ++v) ChooseKept(v);
    for (std::size_t v = 0; v < owner_.size(); ++v) ChooseInterior(v);
    for (std::size_t v = 0; v < owner_.size(); ++v) ChooseMajority(v);
    for (std::size_t v = 0; v < owner_.size(); ++v) ChooseLeastLoaded(v);
    for (std::size_t v = 0; v < owner_.size(); ++v) {
      if (owner_[v] == kNoOwner) Own(v, LeastRows());
    }
    return std::move(owner_);
  }

 private:
  std::uint32_t Replicas(std::size_t vertex, PartitionId& last) const {
    std::uint32_t replicas = 0;
    view_.ForEachPartition(vertex, [&](PartitionId p) {
      last = p;
      ++replicas;
    });
    return replicas;
  }

  void Own(std::size_t vertex, PartitionId p) {
    RHIZOME_DCHECK(owner_[vertex] == kNoOwner && p < partitions_);
    owner_[vertex] = p;
    ++rows_[p];
  }

  void ChooseKept(std::size_t vertex) {
    if constexpr (requires { view_.Kept(vertex); }) {
      const PartitionId kept = view_.Kept(vertex);
      if (kept != kNoOwner) Own(vertex, kept);
    }
  }

  void ChooseInterior(std::size_t vertex) {
    if (owner_[vertex] != kNoOwner) return;
    PartitionId only = 0;
    if (Replicas(vertex, only) == 1) Own(vertex, only);
  }

  void ChooseMajority(std::size_t vertex) {
    if (owner_[vertex] != kNoOwner) return;
    PartitionId last = 0;
    const std::uint32_t replicas = Replicas(vertex, last);
    const bool hub = replicas > 2 && 2 * replicas >= partitions_;
    if (replicas == 0 || hub) return;
    const PartitionId best = view_.Majority(vertex);
    if (best != kNoOwner && rows_[best] < share_) Own(vertex, best);
  }

  void ChooseLeastLoaded(std::size_t vertex) {
    if (owner_[vertex] != kNoOwner) return;
    PartitionId best = kNoOwner;
    view_.ForEachPartition(vertex, [&](PartitionId p) {
      if (best == kNoOwner || rows_[p] < rows_[best]) best = p;
    });
    if (best != kNoOwner) Own(vertex, best);
  }

  PartitionId LeastRows() const {
    return static_cast<PartitionId>(std::min_element(rows_.begin(), rows_.end()) - rows_.begin());
  }

  const View view_;
  const std::uint32_t partitions_;
  const std::uint64_t share_;
  std::vector<PartitionId> owner_;
  std::vector<std::uint64_t> rows_;  // [partitions]
};

}  // namespace internal
}  // namespace rhizome
