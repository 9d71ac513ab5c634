#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/base/counter_random.h"
#include "index/sample/draws.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_lists.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Orders the entries of every list of the traversed sides by time, so that the entries up to a
/// given time are a prefix. In a list that the delta changes, each piece has a separate order,
/// because the order of the whole list is never needed.
/// Memory: 4 bytes an edge.
/// Threads: const after Create.
class TimeOrder {
 public:
  /// `view` is the view of the graph's delta, or null; `lists` has the finder of each side, with
  /// the same view. If `by_type`, each edge type of a list is ordered separately, otherwise all
  /// types together.
  /// Errors: kInvalidArgument, a partition or a delta without one time for each edge, a store that
  /// does not keep the edge ids of this direction, or a list of 2^32 entries.
  static Result<TimeOrder> Create(const GraphSnapshot& graph, const DeltaView* view,
                                  std::span<const ListFinder> lists, const WalkedSides& sides,
                                  bool by_type, std::shared_ptr<const EdgeTimes> times);

  /// Replaces `eligible` by the pieces of `list`, cut to entries not later than `time`; At then
  /// returns the entries of a piece.
  void Cut(std::span<const Piece> list, std::int64_t time, std::vector<Piece>& eligible) const;

  /// Returns the position in the partition's array of the i-th entry by time; `first` is the
  /// beginning of its list.
  std::uint64_t At(PartitionId partition, std::uint64_t first, std::uint64_t i) const {
    return first + order_[partition][first + i];
  }

  /// Replaces `out` by the `draws` latest positions within the cut list. If entries with equal
  /// times do not all fit, each subset of them is equally likely.
  void Latest(CounterRandom& random, std::span<const Piece> eligible, std::uint64_t draws,
              PositionDrawer& drawer, std::vector<std::uint64_t>& out) const;

 private:
  explicit TimeOrder(const WalkedSides& sides) : sides_(sides) {}
  Status CheckPartition(std::uint32_t p, Direction direction) const;
  Status Sort(std::size_t side, std::uint32_t p, std::uint32_t types);
  Status SortChanged(const DeltaView& view, const ListFinder& lists, std::size_t side,
                     std::uint32_t types);
  void SortList(PartitionId partition, const Adjacency::Range& list);
  void SortPieces(std::span<const Piece> pieces, PartitionId shift);

  /// Returns the time of the entry at a position of a partition's array, or of the delta's.
  std::int64_t TimeOf(PartitionId partition, std::uint64_t position) const {
    const std::size_t side = sides_.SideOf(partition);
    const PartitionId p = sides_.Within(partition);
    if (p == sides_.delta()) return delta_times_[side][position];
    if (const auto entries = entry_times_[partition]; !entries.empty()) return entries[position];
    return times_->OfPartition(p)[partitions_[p]->EdgeAt(sides_.direction(side), position)];
  }
  std::int64_t TimeAt(PartitionId partition, std::uint64_t first, std::uint64_t i) const {
    return TimeOf(partition, first + order_[partition][first + i]);
  }
  std::uint64_t CountUpTo(const Piece& piece, std::uint64_t length, std::int64_t time) const;

  WalkedSides sides_;
  std::shared_ptr<const EdgeTimes> times_;
  std::array<std::span<const std::int64_t>, 2> delta_times_;  // by side
  std::vector<std::span<const std::int64_t>> entry_times_;    // as order_; empty: by edge id
  std::vector<const Adjacency*> partitions_;
  // [partition][position]: offset within its list, or piece; partitions are numbered by
  // WalkedSides.
  std::vector<std::vector<std::uint32_t>> order_;
};

}  // namespace internal
}  // namespace rhizome
