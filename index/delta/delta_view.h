#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/replica_table.h"
#include "index/topology/rank_bitmap.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A graph's delta as an additional partition for gather-apply sampling (docs/DESIGN.md, section
/// 6). It holds the lists that differ from the generation's. Each is a sequence of pieces: pieces
/// of the generation's lists, without the erased edges, and one piece with the delta's edges. A
/// sampler draws positions over all pieces of a list, so that every remaining edge has the same
/// probability, and erased edges are never drawn.
/// Memory: 20 bytes an added edge and direction, 8 an added edge, 24 a piece.
/// Threads: const after Build.
class DeltaView {
 public:
  using Piece = ReplicaTable::Part;

  /// Builds the view.
  /// Errors: any error of reading lists that are on disk.
  static Result<std::shared_ptr<const DeltaView>> Build(std::shared_ptr<const GraphParts> parts,
                                                        std::shared_ptr<const Delta> delta);

  /// Returns the number of the delta's partition: one above the generation's last.
  PartitionId partition() const { return partition_; }

  /// Returns whether the list of a row differs from the generation's; always true for new vertices.
  /// `direction` is kOut or kIn, and must be stored; a symmetric graph has one list for both.
  bool Touched(Row row, Direction direction) const {
    return side(direction).touched.Test(static_cast<std::uint64_t>(row));
  }

  /// Calls visit(row) for each row whose list differs.
  template <typename Visit>
  void ForEachTouched(Direction direction, Visit&& visit) const {
    side(direction).touched.ForEach([&](std::uint64_t row) { visit(static_cast<Row>(row)); });
  }

  /// Returns all pieces of a touched row's list. The piece with the delta's edges has partition().
  std::span<const Piece> PiecesOf(Row row, Direction direction) const {
    return PiecesAt(IndexOf(row, direction), direction);
  }

  /// PiecesOf in two steps, for many rows at once: IndexOf returns the index of a touched row,
  /// PiecesAt the pieces at that index. Each prefetches the data that the next step reads.
  std::uint64_t IndexOf(Row row, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t index = lists.touched.Rank(static_cast<std::uint64_t>(row));
    __builtin_prefetch(&lists.first_piece[index]);
    return index;
  }
  std::span<const Piece> PiecesAt(std::uint64_t index, Direction direction) const {
    const Side& lists = side(direction);
    const std::uint64_t first = lists.first_piece[index];
    __builtin_prefetch(lists.pieces.data() + first);
    return std::span(lists.pieces).subspan(first, lists.first_piece[index + 1] - first);
  }

  /// Returns the part of the delta's piece with type `type`, whose positions are contiguous.
  Adjacency::Range EntriesOfType(const Piece& piece, std::uint64_t count, Direction direction,
                                 TypeId type) const;

  /// Columns of the delta's edges, by position.
  std::span<const Row> rows(Direction direction) const { return side(direction).rows; }
  std::span<const TypeId> types(Direction direction) const { return side(direction).types; }
  std::span<const float> weights(Direction direction) const { return side(direction).weights; }

  /// Returns value `a` of the edge at `position`, in the representation of DeltaRun.
  std::int64_t Attribute(Direction direction, std::uint64_t position, std::uint32_t a) const {
    return AttributeOf(NumberOf(direction, position), a);
  }

  /// Returns the number of the delta's edge at `position`: the same in both directions, in every
  /// process, and after further commits, until the next generation.
  std::uint64_t NumberOf(Direction direction, std::uint64_t position) const {
    return side(direction).numbers[position];
  }
  /// Returns the bound of these numbers, including numbers of edges that were deleted later.
  std::uint64_t number_bound() const { return merged_->numbered; }

  /// Returns value `a` of the edge with a number below number_bound().
  std::int64_t AttributeOf(std::uint64_t number, std::uint32_t a) const {
    return merged_->attributes[number * merged_->attribute_count + a];
  }

  /// Returns the position of the edge with a number below number_bound() in the lists of
  /// place_direction(); nullopt if it was deleted.
  std::optional<std::uint64_t> PlaceOf(std::uint64_t number) const {
    const std::uint64_t place = places_[number];
    return place == kNoPlace ? std::nullopt : std::optional(place);
  }
  Direction place_direction() const { return place_direction_; }

  /// Returns the number of edges of the graph including the delta; a pair of a symmetric graph
  /// counts twice.
  std::uint64_t edge_count() const { return edge_count_; }

  const Delta& delta() const { return *delta_; }

 private:
  friend class DeltaViewBuilder;
  struct Side {
    RankBitmap touched;                      // by row, including the rows of new vertices
    std::vector<std::uint64_t> first_piece;  // [touched + 1]
    std::vector<Piece> pieces;
    std::vector<Row> rows;  // rows of the neighbours
    std::vector<TypeId> types;
    std::vector<float> weights;
    std::vector<std::uint32_t> numbers;
  };
  static constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};
  DeltaView() = default;
  const Side& side(Direction direction) const {
    return direction == Direction::kOut || delta_->symmetric() ? out_ : in_;
  }

  std::shared_ptr<const GraphParts> parts_;
  std::shared_ptr<const Delta> delta_;
  std::shared_ptr<const DeltaRun> merged_;
  PartitionId partition_ = 0;
  std::uint64_t edge_count_ = 0;
  Side out_;
  Side in_;
  Direction place_direction_ = Direction::kOut;
  std::vector<std::uint64_t> places_;  // by number
};

}  // namespace internal
}  // namespace rhizome
