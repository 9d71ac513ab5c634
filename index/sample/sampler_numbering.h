#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Gives the vertices of a sample their local numbers, in order of first sight. Two kinds: by row
/// (4 bytes a vertex of the graph, one look-up), and by (subgraph, row) for disjoint samples (a
/// hash table as large as the sample). Threads: one at a time.
class Numbering {
 public:
  /// Local numbers are below this.
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// `rows`: of the graph. `disjoint`: by (subgraph, row).
  Numbering(std::uint64_t rows, bool disjoint);

  /// Replaces drawn rows by local numbers: locals[i] = number of drawn[i], and appends new ones to
  /// `known`. The spans may be the same memory.
  void Number(std::span<const Row> drawn, std::span<std::int64_t> locals, std::vector<Row>& known);

  /// The same within one subgraph; appends the subgraph of new ones to `subgraph_of`.
  void NumberIn(std::uint32_t subgraph, std::span<const Row> drawn, std::span<std::int64_t> locals,
                std::vector<Row>& known, std::vector<std::uint32_t>& subgraph_of);

  /// Forgets what was numbered; `known` is all of it.
  void Forget(std::span<const Row> known);

 private:
  struct Slot {
    Row row = 0;
    std::uint32_t subgraph = 0;
    std::uint32_t local = kNone;  // kNone: free
  };
  std::size_t Find(std::uint32_t subgraph, Row row) const;
  void Grow();

  const bool disjoint_;
  std::vector<std::uint32_t> local_of_row_;  // not disjoint
  std::vector<Slot> slots_;                  // disjoint: open addressing, at most half full
  std::size_t used_ = 0;
};

}  // namespace rhizome::inline internal
