#include "index/delta/delta_view.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

namespace {

/// An erased edge of the generation: an entry of `vertex`'s list.
struct Gone {
  static constexpr std::int32_t kAnyType = -1;
  VertexId vertex = 0;
  VertexId neighbor = 0;
  std::int32_t type = kAnyType;
  friend auto operator<=>(const Gone&, const Gone&) = default;
};

/// Positions [first, first + count) of a partition's array that are erased.
using Hole = Adjacency::Range;

}  // namespace

class DeltaViewBuilder {
 public:
  explicit DeltaViewBuilder(DeltaView& view)
      : view_(view), parts_(*view.parts_), delta_(*view.delta_) {}

  // Builds the view, one side for each stored direction:
  // 1. collects the erased edges of the generation's lists (CollectGone);
  // 2. finds the lists that differ (TouchedLists);
  // 3. cuts the erased edges out of the generation's lists (CutBase, FindHoles);
  // 4. appends the added edges to each list (AppendAdded);
  // 5. records the position of each added edge (FindPlaces).
  Status Build() {
    RHIZOME_RETURN_IF_ERROR(parts_.CheckComplete("a view of all lists with what was written"));
    view_.partition_ = static_cast<PartitionId>(parts_.partitions.size());
    view_.merged_ = delta_.Merged();
    const bool out = Kept(Direction::kOut);
    const bool in = Kept(Direction::kIn) && !delta_.symmetric();
    if (out) RHIZOME_RETURN_IF_ERROR(BuildSide(Direction::kOut, view_.out_));
    if (in) RHIZOME_RETURN_IF_ERROR(BuildSide(Direction::kIn, view_.in_));
    std::uint64_t base = 0;
    for (const Adjacency& partition : parts_.partitions) base += partition.edge_count();
    const DeltaView::Side& side = out ? view_.out_ : view_.in_;
    view_.edge_count_ = base - holes_ + side.rows.size();
    FindPlaces(out ? Direction::kOut : Direction::kIn, side);
    return Status::Ok();
  }

 private:
  bool Kept(Direction direction) const { return parts_.partitions.front().has(direction); }
  bool InBase(VertexId vertex) const {
    return static_cast<std::uint64_t>(vertex) < delta_.base_vertices();
  }
  static Direction Opposite(Direction direction) {
    return direction == Direction::kOut ? Direction::kIn : Direction::kOut;
  }

  /// Calls visit(partition, local) for each partition that holds edges of a vertex of the
  /// generation.
  template <typename Visit>
  Status ForEachPart(VertexId vertex, Visit&& visit) const {
    return parts_.ForEachPart(parts_.order.RowOf(vertex), visit);
  }

  Status BuildSide(Direction direction, DeltaView::Side& side);
  void FindPlaces(Direction direction, const DeltaView::Side& side) {
    view_.place_direction_ = direction;
    view_.places_.assign(view_.merged_->numbered, DeltaView::kNoPlace);
    for (std::size_t i = 0; i < side.numbers.size(); ++i) view_.places_[side.numbers[i]] = i;
  }
  std::vector<std::pair<Row, VertexId>> TouchedLists(Direction direction,
                                                     std::span<const Gone> gone) const;
  void AppendAdded(VertexId vertex, Direction direction, std::uint64_t begin,
                   DeltaView::Side& side) const;
  Result<std::uint64_t> LengthInBase(VertexId vertex, Direction direction) const;
  Result<std::vector<Gone>> CollectGone(Direction direction) const;
  Status NeighborsOfDeleted(VertexId vertex, Direction direction, std::vector<Gone>& gone) const;
  Status ScanForDeleted(Direction direction, std::vector<Gone>& gone) const;
  Status CutBase(VertexId vertex, Direction direction, std::span<const Gone> gone,
                 std::vector<DeltaView::Piece>& pieces);
  Status FindHoles(PartitionId p, LocalId local, Direction direction, std::span<const Gone> gone,
                   std::vector<Hole>& holes) const;

  DeltaView& view_;
  const GraphParts& parts_;
  const Delta& delta_;
  std::uint64_t holes_ = 0;  // number of erased entries of the current side
};

Status DeltaViewBuilder::BuildSide(Direction direction, DeltaView::Side& side) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Gone> gone, CollectGone(direction));
  side.touched = RankBitmap(delta_.vertices());
  side.first_piece = {0};
  holes_ = 0;
  for (const auto& [row, vertex] : TouchedLists(direction, gone)) {
    side.touched.Set(static_cast<std::uint64_t>(row));
    std::uint64_t left = 0;
    if (!delta_.IsDeleted(vertex)) {
      const auto of_vertex = [](const Gone& a, const Gone& b) { return a.vertex < b.vertex; };
      const auto cut =
          std::equal_range(gone.begin(), gone.end(), Gone{.vertex = vertex}, of_vertex);
      if (InBase(vertex))
        RHIZOME_RETURN_IF_ERROR(CutBase(vertex, direction, {cut.first, cut.second}, side.pieces));
      if (side.pieces.size() > side.first_piece.back()) left = side.pieces.back().end;
      AppendAdded(vertex, direction, left, side);
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t had, LengthInBase(vertex, direction));
    holes_ += had - left;
    side.first_piece.push_back(side.pieces.size());
  }
  side.touched.Seal();
  return Status::Ok();
}

/// Returns the vertices whose lists differ, sorted by row.
std::vector<std::pair<Row, VertexId>> DeltaViewBuilder::TouchedLists(
    Direction direction, std::span<const Gone> gone) const {
  std::vector<std::pair<Row, VertexId>> touched;
  const auto touch = [&](VertexId vertex) {
    if (touched.empty() || touched.back().second != vertex)
      touched.emplace_back(parts_.RowOf(vertex), vertex);
  };
  for (const DeltaEdge& edge : view_.merged_->list(direction, delta_.symmetric()))
    touch(edge.vertex);
  for (const Gone& one : gone) touch(one.vertex);
  for (const VertexId vertex : view_.merged_->deleted) touch(vertex);
  for (std::uint64_t v = delta_.base_vertices(); v < delta_.vertices(); ++v)
    touch(static_cast<VertexId>(v));
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

/// Appends the edges that the delta added to a list, as a piece after the generation's pieces.
void DeltaViewBuilder::AppendAdded(VertexId vertex, Direction direction, std::uint64_t begin,
                                   DeltaView::Side& side) const {
  const std::uint64_t first = side.rows.size();
  for (const DeltaEdge& edge : view_.merged_->ListOf(vertex, direction, delta_.symmetric())) {
    if (edge.erase || delta_.IsDeleted(edge.neighbor)) continue;
    side.rows.push_back(parts_.RowOf(edge.neighbor));
    side.types.push_back(edge.type);
    side.weights.push_back(edge.weight);
    side.numbers.push_back(edge.number);
  }
  if (side.rows.size() == first) return;
  side.pieces.push_back({.end = begin + side.rows.size() - first,
                         .first = first,
                         .local = static_cast<LocalId>(side.first_piece.size() - 1),
                         .partition = view_.partition_});
}

Result<std::uint64_t> DeltaViewBuilder::LengthInBase(VertexId vertex, Direction direction) const {
  std::uint64_t length = 0;
  if (!InBase(vertex)) return length;
  RHIZOME_RETURN_IF_ERROR(ForEachPart(vertex, [&](PartitionId p, LocalId local) {
    length += parts_.partitions[p].Entries(local, direction).count;
    return Status::Ok();
  }));
  return length;
}

/// Returns the erased edges in the lists of `direction`, sorted.
Result<std::vector<Gone>> DeltaViewBuilder::CollectGone(Direction direction) const {
  std::vector<Gone> gone;
  for (const DeltaEdge& edge : view_.merged_->list(direction, delta_.symmetric())) {
    if (edge.erase && InBase(edge.vertex) && InBase(edge.neighbor))
      gone.push_back({edge.vertex, edge.neighbor, edge.type});
  }
  const auto& deleted = view_.merged_->deleted;
  const bool any_in_base = !deleted.empty() && InBase(deleted.front());
  if (any_in_base && !Kept(Opposite(direction))) {
    RHIZOME_RETURN_IF_ERROR(ScanForDeleted(direction, gone));
  } else {
    for (const VertexId vertex : deleted) {
      if (InBase(vertex) && !RHIZOME_MUTANT("lists still name deleted vertices"))
        RHIZOME_RETURN_IF_ERROR(NeighborsOfDeleted(vertex, Opposite(direction), gone));
    }
  }
  // An edge that is erased twice, by itself and with a vertex, is searched for once.
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  return gone;
}

// Finds the lists that contain the deleted vertex through its own list of the other direction.
Status DeltaViewBuilder::NeighborsOfDeleted(VertexId vertex, Direction direction,
                                            std::vector<Gone>& gone) const {
  return ForEachPart(vertex, [&](PartitionId p, LocalId local) -> Status {
    const Adjacency& partition = parts_.partitions[p];
    std::vector<LocalId> scratch;
    RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, direction, scratch));
    for (const LocalId neighbor : list)
      gone.push_back(
          {.vertex = parts_.order.VertexAt(partition.RowOf(neighbor)), .neighbor = vertex});
    return Status::Ok();
  });
}

// Scans all lists, which is necessary if a store has only one direction.
Status DeltaViewBuilder::ScanForDeleted(Direction direction, std::vector<Gone>& gone) const {
  for (const Adjacency& partition : parts_.partitions) {
    std::vector<bool> deleted(partition.vertex_count(), false);
    bool any = false;
    for (const VertexId vertex : view_.merged_->deleted) {
      if (!InBase(vertex)) continue;
      if (const auto local = partition.Find(parts_.order.RowOf(vertex)))
        any = deleted[*local] = true;
    }
    if (!any) continue;
    std::vector<LocalId> scratch;
    for (std::uint64_t i = 0; i < partition.vertex_count(); ++i) {
      const auto local = static_cast<LocalId>(i);
      RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, direction, scratch));
      for (const LocalId neighbor : list) {
        if (!deleted[neighbor]) continue;
        gone.push_back({.vertex = parts_.order.VertexAt(partition.RowOf(local)),
                        .neighbor = parts_.order.VertexAt(partition.RowOf(neighbor))});
      }
    }
  }
  return Status::Ok();
}

// Appends the pieces of the generation's list of a vertex, without the erased edges.
Status DeltaViewBuilder::CutBase(VertexId vertex, Direction direction, std::span<const Gone> gone,
                                 std::vector<DeltaView::Piece>& pieces) {
  std::uint64_t end = 0;
  return ForEachPart(vertex, [&](PartitionId p, LocalId local) -> Status {
    const Adjacency::Range all = parts_.partitions[p].Entries(local, direction);
    std::vector<Hole> holes;
    if (!gone.empty() && all.count > 0)
      RHIZOME_RETURN_IF_ERROR(FindHoles(p, local, direction, gone, holes));
    holes.push_back({all.first + all.count, 0});
    std::uint64_t first = all.first;
    for (const Hole& hole : holes) {
      if (hole.first > first) {
        end += hole.first - first;
        pieces.push_back({.end = end, .first = first, .local = local, .partition = p});
      }
      first = std::max(first, hole.first + hole.count);
    }
    return Status::Ok();
  });
}

Status DeltaViewBuilder::FindHoles(PartitionId p, LocalId local, Direction direction,
                                   std::span<const Gone> gone, std::vector<Hole>& holes) const {
  const Adjacency& partition = parts_.partitions[p];
  const std::uint64_t list_first = partition.Entries(local, direction).first;
  std::vector<LocalId> scratch;
  RHIZOME_ASSIGN_OR_RETURN(const auto list, partition.FetchList(local, direction, scratch));
  const auto find_in = [&](const Adjacency::Range& range, LocalId neighbor) {
    const auto begin = list.begin() + static_cast<std::ptrdiff_t>(range.first - list_first);
    const auto found =
        std::equal_range(begin, begin + static_cast<std::ptrdiff_t>(range.count), neighbor);
    if (found.first == found.second) return;
    holes.push_back({list_first + static_cast<std::uint64_t>(found.first - list.begin()),
                     static_cast<std::uint64_t>(found.second - found.first)});
  };
  for (const Gone& one : gone) {
    const auto neighbor = partition.Find(parts_.order.RowOf(one.neighbor));
    if (!neighbor) continue;
    if (one.type != Gone::kAnyType) {
      find_in(partition.EntriesOfType(local, direction, static_cast<TypeId>(one.type)), *neighbor);
      continue;
    }
    for (std::uint64_t i = 0; i < list.size();) {
      const TypeId type = partition.TypeOfEntry(local, direction, i);
      const auto range = partition.EntriesOfType(local, direction, type);
      find_in(range, *neighbor);
      i += range.count;
    }
  }
  std::sort(holes.begin(), holes.end(),
            [](const Hole& a, const Hole& b) { return a.first < b.first; });
  return Status::Ok();
}

Result<std::shared_ptr<const DeltaView>> DeltaView::Build(std::shared_ptr<const GraphParts> parts,
                                                          std::shared_ptr<const Delta> delta) {
  std::shared_ptr<DeltaView> view(new DeltaView);
  view->parts_ = std::move(parts);
  view->delta_ = std::move(delta);
  RHIZOME_RETURN_IF_ERROR(DeltaViewBuilder(*view).Build());
  return std::shared_ptr<const DeltaView>(std::move(view));
}

Adjacency::Range DeltaView::EntriesOfType(const Piece& piece, std::uint64_t count,
                                          Direction direction, TypeId type) const {
  const auto all = types(direction).subspan(piece.first, count);
  const auto found = std::equal_range(all.begin(), all.end(), type);
  return {piece.first + static_cast<std::uint64_t>(found.first - all.begin()),
          static_cast<std::uint64_t>(found.second - found.first)};
}

}  // namespace internal
}  // namespace rhizome
