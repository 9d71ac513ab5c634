#include "index/sample/sampler_lists.h"

#include <algorithm>
#include <utility>

#include "index/delta/graph_parts.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

ListFinder::ListFinder(const GraphSnapshot& graph, std::shared_ptr<const DeltaView> view,
                       Direction direction)
    : order_(graph.order()),
      view_(std::move(view)),
      direction_(direction),
      replicas_(graph.parts()->partitions, graph.vertex_count(), direction) {
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    partitions_.push_back(&graph.partition(p));
  }
}

void ListFinder::FindAll(std::span<const Row> rows, std::span<VertexList> lists) const {
  RHIZOME_DCHECK(rows.size() == lists.size());
  // Each loop prefetches the data that the next one reads.
  if (view_ == nullptr) {
    for (std::size_t i = 0; i < rows.size(); ++i) Locate(rows[i], lists[i]);
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!LocateChanged(rows[i], lists[i])) Locate(rows[i], lists[i]);
    }
  }
  for (VertexList& list : lists) {
    if (list.place == VertexList::Place::kInterior) {
      const Adjacency::Range found =
          partitions_[list.own.partition]->Entries(list.own.local, direction_);
      list.own.first = found.first;
      list.own.end = found.count;
    } else if (list.place == VertexList::Place::kBoundary) {
      list.shared = replicas_.At(list.own.first);
    } else {
      list.shared = view_->PiecesAt(list.own.first, direction_);
    }
    RHIZOME_DCHECK(std::is_sorted(list.pieces().begin(), list.pieces().end(),
                                  [](const Piece& a, const Piece& b) { return a.end < b.end; }));
  }
}

// For a boundary vertex, own.first temporarily holds its index among the boundary vertices, until
// FindAll reads it.
void ListFinder::Locate(Row row, VertexList& list) const {
  list.vertex = static_cast<std::uint64_t>(order_.VertexAt(row));
  if (partitions_.size() > 1 && replicas_.boundary(row)) {
    list.place = VertexList::Place::kBoundary;
    list.own.first = replicas_.IndexOf(row);
    return;
  }
  list.place = VertexList::Place::kInterior;
  const PartitionId owner = partitions_.size() > 1 ? order_.OwnerOf(row) : PartitionId{0};
  const LocalId local = order_.grouped() ? static_cast<LocalId>(row - order_.owner_begin(owner))
                                         : *partitions_[owner]->Find(row);
  list.own.partition = owner;
  list.own.local = local;
  partitions_[owner]->PrefetchList(local, direction_);
}

// Handles vertices whose lists the delta changes; own.first temporarily holds the index among them,
// until FindAll reads it. They include new vertices, which the order does not have, and whose rows
// equal their ids.
bool ListFinder::LocateChanged(Row row, VertexList& list) const {
  if (!view_->Touched(row, direction_)) return false;
  const bool old = static_cast<std::uint64_t>(row) < order_.size();
  list.vertex = static_cast<std::uint64_t>(old ? order_.VertexAt(row) : VertexId{row});
  list.place = VertexList::Place::kChanged;
  list.own.first = view_->IndexOf(row, direction_);
  return true;
}

void ListFinder::OnlyType(std::span<const Piece> list, TypeId type,
                          std::vector<Piece>& pieces) const {
  pieces.clear();
  AppendOfType(list, 0, 0, type, pieces);
}

void ListFinder::AppendOfType(std::span<const Piece> list, std::uint64_t begin, PartitionId shift,
                              TypeId type, std::vector<Piece>& pieces) const {
  std::uint64_t end = LengthOf(pieces);
  Adjacency::Range all;  // entries of this type in the list of the piece
  const Piece* before = nullptr;
  for (const Piece& piece : list) {
    const std::uint64_t count = piece.end - begin;
    begin = piece.end;
    const bool same =
        before != nullptr && before->partition == piece.partition && before->local == piece.local;
    before = &piece;
    const std::size_t partition = piece.partition - shift;
    if (partition == partitions_.size()) {
      all = view_->EntriesOfType(piece, count, direction_, type);
    } else if (!same) {
      all = partitions_[partition]->EntriesOfType(piece.local, direction_, type);
    }
    const std::uint64_t first = std::max(all.first, piece.first);
    const std::uint64_t last = std::min(all.first + all.count, piece.first + count);
    if (last <= first) continue;
    end += last - first;
    pieces.push_back(
        {.end = end, .first = first, .local = piece.local, .partition = piece.partition});
  }
}

}  // namespace internal
}  // namespace rhizome
