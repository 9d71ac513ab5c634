#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gnn/links/few_rows.h"
#include "gnn/links/link_decoder.h"
#include "gnn/links/rank_figures.h"
#include "index/base/parallel.h"

namespace rhizome {
inline namespace internal {

/// By edge of a block; empty if that end is not ranked.
struct GivenCounts {
  std::vector<LinkCounts> dst;
  std::vector<LinkCounts> src;
};

/// Ranks test edges among candidates that are given for each of them.
/// Ownership: borrows its arguments.
class GivenRanks {
 public:
  /// `bytes` is the memory of a block.
  GivenRanks(const LinkTable& table, const LinkDecoder& decoder,
             const LinkEvaluationEdges::Given& given, std::uint64_t bytes);

  /// Max number of edges of a block.
  std::size_t block_edges() const { return block_edges_; }

  /// Reads the candidates of the next edges and ranks their true ends.
  /// Errors: kInvalidArgument, there are fewer candidates than edges, an unknown vertex, or a score
  /// that is not a number; errors of the sources and of reading rows.
  Result<GivenCounts> Rank(std::span<const VertexPair> edges, TaskArena& arena,
                           const JobControl& control);

  /// Checks that the sources have no more candidates. Errors: kInvalidArgument.
  Status Finish() const;

 private:
  Result<std::vector<Row>> Next(const VertexSource& source, std::size_t edges) const;
  Result<std::vector<LinkCounts>> Count(std::span<const VertexPair> edges,
                                        std::span<const Row> candidates, EdgeEnd open,
                                        const GatheredRows& rows, TaskArena& arena) const;

  const LinkTable& table_;
  const LinkDecoder& decoder_;
  const LinkEvaluationEdges::Given& given_;
  std::size_t block_edges_;
};

}  // namespace internal
}  // namespace rhizome
