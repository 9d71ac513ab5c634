#include "cache/tables/graph_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "index/delta/delta_view.h"
#include "index/topology/adjacency.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns the local vertex whose list has the entry at `position`.
LocalId VertexOfEntry(const Adjacency& partition, Direction direction, std::uint64_t position) {
  auto begin = LocalId{0};
  auto end = static_cast<LocalId>(partition.vertex_count());
  while (end - begin > 1) {  // the list of `begin` begins at `position` or before, later ones not
    const LocalId middle = begin + (end - begin) / 2;
    (partition.Entries(middle, direction).first <= position ? begin : end) = middle;
  }
  return begin;
}

}  // namespace

Result<GraphEdges> GraphEdges::Of(std::shared_ptr<const GraphSnapshot> graph) {
  GraphEdges edges(std::move(graph));
  RHIZOME_RETURN_IF_ERROR(Guarded([&] { return edges.CountEdges(); }));
  return edges;
}

Status GraphEdges::CountEdges() {
  for (std::uint32_t p = 0; p < graph_->partition_count(); ++p) {
    if (!graph_->is_loaded(p))
      return Status::InvalidArgument(fmt::format("partition {} is not loaded", p));
    counts_.push_back(graph_->partition(p).edge_count());
  }
  if (!graph_->partition(0).has(Direction::kOut)) direction_ = Direction::kIn;
  counts_.push_back(0);
  RHIZOME_ASSIGN_OR_RETURN(view_, graph_->delta_view());
  if (view_ == nullptr) return Status::Ok();
  delta_rows_.resize(view_->rows(direction_).size());
  counts_.back() = delta_rows_.size();
  view_->ForEachTouched(direction_, [&](Row row) {
    std::uint64_t begin = 0;
    for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction_)) {
      const std::uint64_t count = piece.end - std::exchange(begin, piece.end);
      if (piece.partition == view_->partition())
        std::fill_n(delta_rows_.begin() + static_cast<std::ptrdiff_t>(piece.first), count, row);
    }
  });
  return Status::Ok();
}

VertexPair GraphEdges::Directed(VertexId from, VertexId to, TypeId type) const {
  return direction_ == Direction::kOut ? VertexPair{from, to, type} : VertexPair{to, from, type};
}

Status GraphEdges::Read(std::uint32_t group, std::span<const std::uint64_t> positions,
                        std::vector<VertexPair>& edges) {
  edges.clear();
  return Guarded([&] {
    if (group < graph_->partition_count()) return ReadPartition(group, positions, edges);
    ReadDelta(positions, edges);
    return Status::Ok();
  });
}

bool GraphEdges::IsErased(Row row, std::uint32_t p, std::uint64_t position) const {
  if (view_ == nullptr || !view_->Touched(row, direction_)) return false;
  std::uint64_t begin = 0;
  for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction_)) {
    const std::uint64_t count = piece.end - std::exchange(begin, piece.end);
    if (piece.partition == p && position >= piece.first && position - piece.first < count)
      return false;
  }
  return true;
}

/// Reads the edges in ascending order of their positions, so that each list is fetched once.
Status GraphEdges::ReadPartition(std::uint32_t p, std::span<const std::uint64_t> positions,
                                 std::vector<VertexPair>& edges) {
  const Adjacency& partition = graph_->partition(p);
  edges.resize(positions.size());
  order_.resize(positions.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(),
            [&](std::size_t a, std::size_t b) { return positions[a] < positions[b]; });
  std::vector<bool> erased(positions.size());
  Adjacency::Range range;
  LocalId local = 0;
  std::span<const LocalId> list;
  for (const std::size_t i : order_) {
    const std::uint64_t position = positions[i];
    if (list.empty() || position - range.first >= range.count) {
      local = VertexOfEntry(partition, direction_, position);
      range = partition.Entries(local, direction_);
      RHIZOME_ASSIGN_OR_RETURN(list, partition.FetchList(local, direction_, scratch_));
    }
    const std::uint64_t at = position - range.first;
    const Row row = partition.RowOf(local);
    erased[i] = IsErased(row, p, position);
    edges[i] =
        Directed(graph_->order().VertexAt(row), graph_->order().VertexAt(partition.RowOf(list[at])),
                 partition.TypeOfEntry(local, direction_, at));
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (!erased[i]) edges[kept++] = edges[i];
  edges.resize(kept);
  return Status::Ok();
}

void GraphEdges::ReadDelta(std::span<const std::uint64_t> positions,
                           std::vector<VertexPair>& edges) const {
  const auto vertex_at = [&](Row row) {
    return static_cast<std::uint64_t>(row) < graph_->order().size() ? graph_->order().VertexAt(row)
                                                                    : row;
  };
  for (const std::uint64_t position : positions) {
    edges.push_back(Directed(vertex_at(delta_rows_[position]),
                             vertex_at(view_->rows(direction_)[position]),
                             view_->types(direction_)[position]));
  }
}

}  // namespace internal
}  // namespace rhizome
