#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache/feed/row_types.h"
#include "gnn/links/link_table.h"

namespace rhizome {
inline namespace internal {

/// The rows that may take an open end of an edge. A *set* of them is a vertex type, or, without
/// types, all vertices. Deleted vertices are in no set, and neither are vertices of other types
/// than the type that the array is bound to.
/// Memory: a bit for each set and chunk; a bit for each row if vertices were deleted.
/// Threads: const.
/// Ownership: borrows the table.
class Candidates {
 public:
  /// With `by_type` there is a set for each vertex type, otherwise one set.
  Candidates(const LinkTable& table, bool by_type);

  /// Returns the set for an end that is at `row` in an edge that exists.
  std::uint32_t SetOf(Row row) const { return by_type_ ? types_.Of(row) : 0; }

  /// Returns the set of a vertex type.
  std::uint32_t SetOfType(TypeId type) const { return by_type_ ? type : 0; }

  /// Returns whether the array has rows for a vertex at `row`.
  bool HasRow(Row row) const { return !bound_ || types_.Of(row) == *bound_; }

  /// Returns whether a chunk of the array has rows of a set.
  bool InChunk(std::uint32_t set, std::uint64_t chunk) const { return in_chunk_[set][chunk]; }

  /// Sets `places` to the rows of a set in [first, first + count), as numbers in [0, count).
  void Places(std::uint32_t set, Row first, std::uint64_t count,
              std::vector<std::uint32_t>& places) const;

  std::uint32_t sets() const { return static_cast<std::uint32_t>(in_chunk_.size()); }

  /// Returns the memory of an object for this table.
  static std::uint64_t Bytes(const LinkTable& table);

 private:
  bool Has(std::uint32_t set, Row row) const {
    if (!deleted_.empty() && deleted_[static_cast<std::size_t>(row)]) return false;
    return HasRow(row) && (!by_type_ || types_.Of(row) == set);
  }

  const RowTypes types_;
  const bool by_type_;
  std::optional<TypeId> bound_;
  std::vector<bool> deleted_;                // by row; empty: none
  std::vector<std::vector<bool>> in_chunk_;  // [sets][chunks]
};

}  // namespace internal
}  // namespace rhizome
