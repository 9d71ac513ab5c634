// Temporal sampling. Create sorts the entries of every list by time (Sort), and then the pieces of
// lists that the delta changes (SortChanged). A draw cuts a list to the entries up to the seed's
// time by binary search (Cut), and then picks any of them, or the latest (Latest).

#include "index/sample/sampler_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "index/base/parallel.h"
#include "index/topology/adjacency.h"
#include "index/topology/bound_search.h"
#include "index/topology/vertex_order.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

Result<TimeOrder> TimeOrder::Create(const GraphSnapshot& graph, const DeltaView* view,
                                    std::span<const ListFinder> lists, const WalkedSides& sides,
                                    bool by_type, std::shared_ptr<const EdgeTimes> times) {
  TimeOrder made(sides);
  made.times_ = std::move(times);
  const auto types = static_cast<std::uint32_t>(by_type ? graph.edge_types().size() : 0);
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    made.partitions_.push_back(&graph.partition(p));
  for (std::size_t side = 0; side < sides.count(); ++side) {
    made.order_.resize(sides.ShiftOf(side) + std::size_t{sides.delta()});
    made.entry_times_.resize(made.order_.size());
    for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
      made.entry_times_[sides.ShiftOf(side) + p] = made.times_->OfEntries(p, sides.direction(side));
      RHIZOME_RETURN_IF_ERROR(made.CheckPartition(p, sides.direction(side)));
      RHIZOME_RETURN_IF_ERROR(made.Sort(side, p, types));
    }
    if (view != nullptr) RHIZOME_RETURN_IF_ERROR(made.SortChanged(*view, lists[side], side, types));
  }
  return made;
}

// Checks the requirements of the order. Offsets have 32 bits, so the lengths are checked
// beforehand, and the sorting threads cannot fail.
Status TimeOrder::CheckPartition(std::uint32_t p, Direction direction) const {
  const Adjacency& partition = *partitions_[p];
  const std::size_t of_entries = times_->OfEntries(p, direction).size();
  const std::size_t given = of_entries > 0 ? of_entries : times_->OfPartition(p).size();
  if (given != partition.edge_count()) {
    return Status::InvalidArgument(
        fmt::format("partition {}: {} time stamps for {} edges; give one for each edge id", p,
                    given, partition.edge_count()));
  }
  if (given > of_entries && !partition.has_edge_ids(direction)) {
    return Status::InvalidArgument(
        fmt::format("partition {} does not keep the ids of its in-edges, to which the time stamps "
                    "belong; ingest the graph with an edge attribute (such as "
                    "`columns=src,dst,time`) or with `directions=in`, or follow out-edges",
                    p));
  }
  for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
    if (partition.Entries(static_cast<LocalId>(v), direction).count >
        std::numeric_limits<std::uint32_t>::max()) {
      return Status::InvalidArgument(fmt::format(
          "partition {} has a list of 2^32 or more edges, which temporal sampling does not support",
          p));
    }
  }
  return Status::Ok();
}

// Sorts every piece of a changed list. The generation's lists were sorted before, as if unchanged.
Status TimeOrder::SortChanged(const DeltaView& view, const ListFinder& lists, std::size_t side,
                              std::uint32_t types) {
  const Direction direction = sides_.direction(side);
  delta_times_[side] = times_->OfDelta(direction);
  const std::size_t edges = view.rows(direction).size();
  if (delta_times_[side].size() != edges) {
    return Status::InvalidArgument(
        fmt::format("there are {} time stamps for {} edges that were written after the generation; "
                    "read them from the snapshot of the sampler",
                    delta_times_[side].size(), edges));
  }
  order_.emplace_back(edges);
  std::vector<Piece> of_type;
  view.ForEachTouched(direction, [&](Row row) {
    const auto pieces = view.PiecesOf(row, direction);
    if (types == 0) SortPieces(pieces, sides_.ShiftOf(side));
    for (std::uint32_t type = 0; type < types; ++type) {
      lists.OnlyType(pieces, static_cast<TypeId>(type), of_type);
      SortPieces(of_type, sides_.ShiftOf(side));
    }
  });
  return Status::Ok();
}

void TimeOrder::SortPieces(std::span<const Piece> pieces, PartitionId shift) {
  std::uint64_t begin = 0;
  for (const Piece& piece : pieces) {
    SortList(static_cast<PartitionId>(piece.partition + shift), {piece.first, piece.end - begin});
    begin = piece.end;
  }
}

Status TimeOrder::Sort(std::size_t side, std::uint32_t p, std::uint32_t types) {
  const Adjacency& partition = *partitions_[p];
  const Direction direction = sides_.direction(side);
  const auto numbered = static_cast<PartitionId>(p + sides_.ShiftOf(side));
  order_[numbered].resize(partition.edge_count());
  constexpr std::uint64_t kGrain = 256;  // vertices of one task
  const std::uint64_t vertices = partition.vertex_count();
  ParallelFor((vertices + kGrain - 1) / kGrain, [&](std::size_t task) {
    for (std::uint64_t v = task * kGrain; v < std::min((task + 1) * kGrain, vertices); ++v) {
      const auto local = static_cast<LocalId>(v);
      const Adjacency::Range all = partition.Entries(local, direction);
      if (types == 0) SortList(numbered, all);
      for (std::uint64_t i = 0; types > 0 && i < all.count;) {
        const TypeId type = partition.TypeOfEntry(local, direction, i);
        const Adjacency::Range of_type = partition.EntriesOfType(local, direction, type);
        SortList(numbered, of_type);
        i += of_type.count;
      }
    }
  });
  return Status::Ok();
}

void TimeOrder::SortList(PartitionId p, const Adjacency::Range& list) {
  const std::span<std::uint32_t> order = std::span(order_[p]).subspan(list.first, list.count);
  std::iota(order.begin(), order.end(), 0U);
  const auto time_of = [&](std::uint32_t i) { return TimeOf(p, list.first + i); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(time_of(a), a) < std::pair(time_of(b), b);
  });
}

// Returns the number of the piece's `length` entries that are not later than `time`.
std::uint64_t TimeOrder::CountUpTo(const Piece& piece, std::uint64_t length,
                                   std::int64_t time) const {
  return FirstNot(0, length,
                  [&](std::size_t i) { return TimeAt(piece.partition, piece.first, i) <= time; });
}

void TimeOrder::Cut(std::span<const Piece> list, std::int64_t time,
                    std::vector<Piece>& eligible) const {
  eligible.clear();
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  for (const Piece& piece : list) {
    const std::uint64_t count = CountUpTo(piece, piece.end - begin, time);
    begin = piece.end;
    if (count == 0) continue;
    end += count;
    Piece& cut = eligible.emplace_back(piece);
    cut.end = end;
  }
}

void TimeOrder::Latest(CounterRandom& random, std::span<const Piece> eligible, std::uint64_t draws,
                       PositionDrawer& drawer, std::vector<std::uint64_t>& out) const {
  out.clear();
  draws = std::min(draws, LengthOf(eligible));
  if (draws == 0) return;
  // The bound is the time of the last selected entry: the draws-th latest of all pieces together.
  std::vector<std::int64_t> latest;
  std::uint64_t begin = 0;
  for (const Piece& piece : eligible) {
    const std::uint64_t length = piece.end - begin;
    begin = piece.end;
    for (std::uint64_t i = length - std::min(length, draws); i < length; ++i) {
      latest.push_back(TimeAt(piece.partition, piece.first, i));
    }
  }
  const auto nth = latest.begin() + static_cast<std::ptrdiff_t>(draws - 1);
  std::nth_element(latest.begin(), nth, latest.end(), std::greater<>());
  const std::int64_t bound = *nth;

  // Selects all entries later than the bound, and as many entries at the bound as are missing. The
  // ties of a piece are [first_tie, first_later).
  struct Ties {
    std::uint64_t end;    // accumulated over the pieces
    std::uint64_t first;  // position in the cut list
  };
  std::vector<Ties> ties;
  begin = 0;
  for (const Piece& piece : eligible) {
    const std::uint64_t length = piece.end - begin;
    const std::uint64_t first_later = CountUpTo(piece, length, bound);
    const std::uint64_t first_tie =
        bound == std::numeric_limits<std::int64_t>::min() ? 0 : CountUpTo(piece, length, bound - 1);
    for (std::uint64_t i = first_later; i < length; ++i) out.push_back(begin + i);
    const std::uint64_t before = ties.empty() ? 0 : ties.back().end;
    ties.push_back({.end = before + first_later - first_tie, .first = begin + first_tie});
    begin = piece.end;
  }
  RHIZOME_DCHECK(out.size() < draws && draws - out.size() <= ties.back().end);
  std::vector<std::uint64_t> chosen;
  drawer.WithoutReplacement(random, ties.back().end, draws - out.size(), chosen);
  for (const std::uint64_t tie : chosen) {
    std::size_t p = 0;
    while (tie >= ties[p].end) ++p;
    out.push_back(ties[p].first + tie - (p == 0 ? 0 : ties[p - 1].end));
  }
  RHIZOME_DCHECK(out.size() == draws);
}

}  // namespace internal
}  // namespace rhizome
