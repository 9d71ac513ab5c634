#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gnn/links/known_edges.h"
#include "gnn/links/query_pass.h"
#include "gnn/links/rank_figures.h"

namespace rhizome {
inline namespace internal {

/// Test edges that are ranked together, and what is known about their open ends.
class RankBlock {
 public:
  /// Ownership: borrows its arguments.
  RankBlock(const LinkTable& table, const LinkDecoder& decoder, const Candidates& candidates,
            const KnownEdges& known)
      : table_(table), decoder_(decoder), candidates_(candidates), known_(known) {}

  std::size_t edges() const { return queries_.size() / 2; }
  std::uint64_t excluded() const { return excluded_.size(); }

  /// Adds both queries of an edge: first the open destination, then the open source. Errors: as
  /// KnownEdges::AppendEnds.
  Status Add(const VertexPair& edge);

  /// Computes the counts of all queries, in the order in which they were added, and forgets the
  /// queries. Errors: as ScanTable.
  Result<std::vector<LinkCounts>> Rank(TaskArena& arena, const JobControl& control,
                                       ScanStats& stats);

  /// Memory of an excluded row.
  static constexpr std::uint64_t kExcludedBytes = sizeof(Row) + sizeof(ExcludedRow);

 private:
  Status AddQuery(VertexId given, VertexId truth, TypeId type, EdgeEnd open);

  const LinkTable& table_;
  const LinkDecoder& decoder_;
  const Candidates& candidates_;
  const KnownEdges& known_;
  std::vector<LinkQuery> queries_;
  std::vector<Row> truth_;              // by query
  std::vector<std::size_t> list_ends_;  // by query: the end of its part of excluded_
  std::vector<Row> excluded_;           // known ends, and the truth
};

/// Returns `rows`, sorted, each of them once.
std::vector<Row> SortedRows(std::vector<Row> rows);

}  // namespace internal
}  // namespace rhizome
