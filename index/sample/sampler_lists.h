#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/delta/delta_view.h"
#include "index/delta/replica_table.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// One partition's part of a list: consecutive entries of its array. The list is the concatenation
/// of its pieces.
using Piece = ReplicaTable::Part;

/// The adjacency list of one vertex, with all types.
struct VertexList {
  /// The data structure that holds the pieces.
  enum class Place : std::uint8_t {
    kInterior,  ///< one piece, in `own`
    kBoundary,  ///< in the table of replicas
    kChanged,   ///< in the view of the delta
    kJoined,    ///< the lists of two directions, one after the other
  };
  /// The vertex id. Draws are keyed by it and not by the row, which depends on the order.
  std::uint64_t vertex = 0;
  std::span<const Piece> shared;  ///< the pieces, unless kInterior
  Piece own;                      ///< the only piece of an interior vertex
  Place place = Place::kInterior;

  std::span<const Piece> pieces() const {
    return place == Place::kInterior ? std::span<const Piece>(&own, 1) : shared;
  }
};

inline std::uint64_t LengthOf(std::span<const Piece> pieces) {
  return pieces.empty() ? 0 : pieces.back().end;
}

/// The piece that holds a position of the list, and the position where the piece begins. The
/// position must be below the list's length.
struct PlaceInList {
  const Piece& piece;
  std::uint64_t begin = 0;
  std::uint64_t partition_position(std::uint64_t position) const {
    return piece.first + position - begin;
  }
};
inline PlaceInList FindPiece(std::span<const Piece> pieces, std::uint64_t position) {
  RHIZOME_DCHECK(position < LengthOf(pieces));
  // A hub with many erased edges has many pieces; other lists have few. The loops have no branches,
  // because the piece cannot be predicted.
  constexpr std::size_t kFew = 8;
  std::size_t p = 0;
  if (pieces.size() <= kFew) {
    for (const Piece& piece : pieces) p += position >= piece.end ? 1 : 0;
  } else {
    for (std::size_t rest = pieces.size(); rest > 1; rest -= rest / 2) {
      p += position >= pieces[p + rest / 2 - 1].end ? rest / 2 : 0;
    }
  }
  RHIZOME_DCHECK(position < pieces[p].end && (p == 0 || position >= pieces[p - 1].end));
  return {pieces[p], p == 0 ? 0 : pieces[p - 1].end};
}

/// Finds the lists of many vertices at once, so that their cache misses overlap.
/// Threads: const after construction.
/// Ownership: `graph` must outlive it.
class ListFinder {
 public:
  /// `view` is the view of the graph's delta; null if there is none.
  ListFinder(const GraphSnapshot& graph, std::shared_ptr<const DeltaView> view,
             Direction direction);

  /// Sets lists[i] to the list of rows[i], overwriting its contents.
  void FindAll(std::span<const Row> rows, std::span<VertexList> lists) const;

  /// Replaces `pieces` by the parts of `list` with edge type `type`; two look-ups for each piece.
  void OnlyType(std::span<const Piece> list, TypeId type, std::vector<Piece>& pieces) const;

  /// Appends the parts of `list` with edge type `type`. `list` has the pieces of this finder's
  /// direction in a joined list: they begin at position `begin` of the joined list, and their
  /// partition numbers are higher by `shift`.
  void AppendOfType(std::span<const Piece> list, std::uint64_t begin, PartitionId shift,
                    TypeId type, std::vector<Piece>& pieces) const;

 private:
  void Locate(Row row, VertexList& list) const;
  bool LocateChanged(Row row, VertexList& list) const;

  const VertexOrder& order_;
  const std::shared_ptr<const DeltaView> view_;
  const Direction direction_;
  std::vector<const Adjacency*> partitions_;
  const ReplicaTable replicas_;
};

}  // namespace internal
}  // namespace rhizome
