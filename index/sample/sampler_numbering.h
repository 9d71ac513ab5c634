#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Assigns local numbers to the vertices of a sample in order of first occurrence. It is keyed
/// either by row (4 bytes a vertex of the graph, one look-up), or, for disjoint samples, by
/// (subgraph, row) (a hash table proportional to the sample).
/// Threads: one at a time.
class Numbering {
 public:
  /// Bound of local numbers; also marks a row without a number.
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// `rows` is the number of rows of the graph. `disjoint` selects keys of (subgraph, row).
  Numbering(std::uint64_t rows, bool disjoint);

  /// Sets locals[i] to the local number of drawn[i], and appends rows without a number to `known`.
  /// The two spans may share memory.
  void Number(std::span<const Row> drawn, std::span<std::int64_t> locals, std::vector<Row>& known);

  /// As Number, within one subgraph; appends the subgraph of new vertices to `subgraph_of`.
  void NumberIn(std::uint32_t subgraph, std::span<const Row> drawn, std::span<std::int64_t> locals,
                std::vector<Row>& known, std::vector<std::uint32_t>& subgraph_of);

  /// Gives the vertices of a sample their numbers again: the number of known[i] is i. There must be
  /// no other numbers. `subgraph_of`: if disjoint, parallel to `known`.
  void Restore(std::span<const Row> known, std::span<const std::uint32_t> subgraph_of);

  /// Returns whether a row has a number. Not for disjoint samples.
  bool Has(Row row) const { return local_of_row_[static_cast<std::size_t>(row)] != kNone; }

  /// Removes all numbers; `known` must be all numbered rows.
  void Forget(std::span<const Row> known);

 private:
  struct Slot {
    Row row = 0;
    std::uint32_t subgraph = 0;
    std::uint32_t local = kNone;  // kNone: free
  };
  std::size_t Find(std::uint32_t subgraph, Row row) const;
  void Grow();
  void Insert(std::size_t slot, std::uint32_t subgraph, Row row, std::uint32_t local);

  const bool disjoint_;
  std::vector<std::uint32_t> local_of_row_;  // not disjoint
  std::vector<Slot> slots_;                  // disjoint: open addressing, at most half full
  std::size_t used_ = 0;
};

}  // namespace internal
}  // namespace rhizome
