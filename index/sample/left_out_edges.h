#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/delta/graph_parts.h"
#include "rhizome/graph_types.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Pairs of rows whose edges a sample leaves out, in both directions.
/// Threads: const functions may be called from many threads.
class LeftOutEdges {
 public:
  /// Replaces the pairs. Errors: kInvalidArgument, an end is not below `vertex_count`.
  Status Set(const GraphParts& parts, std::uint64_t vertex_count,
             std::span<const VertexPair> pairs);

  bool empty() const { return ends_.empty(); }

  /// Returns the rows that are in a pair with `row`, ascending.
  std::span<const Row> PartnersOf(Row row) const;

  /// Removes the entries that lead from a vertex to one of its partners. counts[i] is the number of
  /// entries of vertices[i]; `rows` has the neighbours, parallel to `entries`.
  void Drop(std::span<const Row> vertices, std::vector<std::uint64_t>& counts,
            std::vector<EntryRef>& entries, std::vector<Row>& rows) const;

 private:
  std::uint64_t BitOf(Row row) const;
  bool MayHave(Row row) const {
    const std::uint64_t bit = BitOf(row);
    return (filter_[bit / 64] >> bit % 64 & 1) != 0;
  }

  std::vector<Row> ends_;              // ascending, parallel to partners_; each pair in both orders
  std::vector<Row> partners_;          // ascending for each end, distinct
  std::vector<std::uint64_t> filter_;  // bits of the hashes of all ends: most rows are no end
};

}  // namespace internal
}  // namespace rhizome
