#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "index/base/vertex_column.h"
#include "index/topology/column.h"
#include "rhizome/types.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

inline constexpr const char* kOrderPath = "order/order.ord";

/// A run of rows: [first_row, first_row of the next segment) belong to (owner, type). Typed rows
/// count the rows of one type from 0 over all owners.
struct OrderSegment {
  Row first_row = 0;
  Row first_typed_row = 0;
  PartitionId owner = 0;
  TypeId type = 0;
};

/// The input of VertexOrder::Write.
struct OrderInput {
  VertexSpan vertex_of_row;                      ///< a permutation of [0, vertices)
  std::span<const PartitionId> owner_of_vertex;  ///< [vertices]
  std::span<const TypeId> type_of_vertex;        ///< [vertices], or empty: all type 0
  std::uint32_t partitions = 1;
  std::uint32_t vertex_types = 1;
};

/// Maps vertex ids to rows and back, and rows to owners and types, for one generation. Format:
/// storage/FORMAT.md, "Order".
/// Memory: 4 or 8 bytes a vertex and direction; 1 to 4 more if the rows are not grouped by owner
/// and type. Of a paged file only the parts that were used.
/// Threads: const after Parse.
class VertexOrder {
 public:
  VertexOrder(VertexOrder&&) = default;
  VertexOrder& operator=(VertexOrder&&) = default;

  /// Writes the order to `sink`. Rows that are sorted by (owner, type) are written as grouped,
  /// regardless of the kind of order that produced them.
  static Status Write(ByteSink& sink, const StoreId& store_id, const OrderInput& input);

  /// Checks that the file holds a permutation and segments that cover it. The permutation of a
  /// paged file is read when it is used, and only compared with its bounds. Errors: kCorruption.
  static Result<VertexOrder> Parse(SectionFile file, std::uint64_t vertex_count,
                                   std::uint32_t partitions, std::uint32_t vertex_types);

  /// The functions below accept vertices and rows in [0, size()).
  std::uint64_t size() const { return vertex_count_; }
  Row RowOf(VertexId vertex) const {
    return static_cast<Row>(row_of_vertex_[static_cast<std::size_t>(vertex)]);
  }
  VertexId VertexAt(Row row) const {
    return static_cast<VertexId>(vertex_of_row_[static_cast<std::size_t>(row)]);
  }
  /// Prefetches the memory that VertexAt reads for a row; accepts any number.
  void PrefetchVertexAt(Row row) const {
    if (static_cast<std::uint64_t>(row) < size())
      vertex_of_row_.Prefetch(static_cast<std::size_t>(row));
  }
  PartitionId OwnerOf(Row row) const;
  TypeId TypeOf(Row row) const;

  /// Returns whether the rows of each owner are contiguous. If they are, owner p has the rows
  /// [owner_begin(p), owner_begin(p+1)).
  bool grouped() const { return grouped_; }
  Row owner_begin(std::uint32_t partition) const { return owner_begin_[partition]; }
  std::span<const OrderSegment> segments() const { return segments_; }

  /// Returns the number of rows that a partition owns, grouped or not.
  std::uint64_t owned_count(std::uint32_t partition) const { return owned_counts_[partition]; }

 private:
  VertexOrder() = default;
  Status ReadPermutation();
  Status ReadSegments(std::uint64_t count, std::uint32_t partitions, std::uint32_t vertex_types);
  Status ReadOwners(std::uint32_t partitions, std::uint32_t vertex_types);
  const OrderSegment& SegmentOf(Row row) const;
  Status Corrupt(const std::string& what) const;

  SectionFile file_;
  std::uint64_t vertex_count_ = 0;
  bool grouped_ = true;
  Column row_of_vertex_;
  Column vertex_of_row_;
  std::vector<std::uint64_t> owned_counts_;  // [partitions]
  std::vector<Row> owner_begin_;             // grouped: [partitions + 1]
  std::vector<OrderSegment> segments_;       // grouped
  Column owner_of_row_;                      // not grouped
  Column type_of_row_;                       // not grouped; empty: all type 0
};

}  // namespace internal
}  // namespace rhizome
