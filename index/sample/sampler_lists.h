#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/delta_view.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/replica_table.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/check.h"

namespace rhizome {

/// What one partition holds of a list: entries that stand together in its array. The list is its
/// pieces one after another.
using Piece = ReplicaTable::Part;

/// The neighbour list of one vertex, of all types.
struct VertexList {
  /// Where its pieces are.
  enum class Place : std::uint8_t {
    kInterior,  ///< one, here
    kBoundary,  ///< in the table of replicas
    kChanged,   ///< in the view of the delta
  };
  std::uint64_t vertex = 0;       ///< its id: draws are keyed by it, not by the order's row
  std::span<const Piece> shared;  ///< unless kInterior
  Piece own;                      ///< the only piece of an interior vertex
  Place place = Place::kInterior;

  std::span<const Piece> pieces() const {
    return place == Place::kInterior ? std::span<const Piece>(&own, 1) : shared;
  }
};

inline std::uint64_t LengthOf(std::span<const Piece> pieces) {
  return pieces.empty() ? 0 : pieces.back().end;
}

/// The piece that holds a position of the list, which is below its length, and where it begins.
struct PlaceInList {
  const Piece& piece;
  std::uint64_t begin = 0;
  std::uint64_t partition_position(std::uint64_t position) const {
    return piece.first + position - begin;
  }
};
inline PlaceInList FindPiece(std::span<const Piece> pieces, std::uint64_t position) {
  RHIZOME_DCHECK(position < LengthOf(pieces));
  // A hub of which many edges were erased is cut into many pieces; else there are a few. Without
  // branches: which piece it is in is not to be foreseen.
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
/// Threads: const after construction. Ownership: `graph` must outlive it.
class ListFinder {
 public:
  /// `view`: of the graph's delta; null if it has none.
  ListFinder(const GraphSnapshot& graph, std::shared_ptr<const DeltaView> view,
             Direction direction);

  /// lists[i] = list of rows[i]; what a list held before is overwritten.
  void FindAll(std::span<const Row> rows, std::span<VertexList> lists) const;

  /// Replaces `pieces` by those of the list of pieces `list` that have edge type `type`: two
  /// look-ups for each piece.
  void OnlyType(std::span<const Piece> list, TypeId type, std::vector<Piece>& pieces) const;

 private:
  void Locate(Row row, VertexList& list) const;
  bool LocateChanged(Row row, VertexList& list) const;

  const VertexOrder& order_;
  const std::shared_ptr<const DeltaView> view_;
  const Direction direction_;
  std::vector<const Adjacency*> partitions_;
  const ReplicaTable replicas_;
};

}  // namespace rhizome
