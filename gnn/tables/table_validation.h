#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/tables/table_cache.h"
#include "gnn/tables/table_job.h"
#include "index/base/parallel.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Ranks the validation edges of a training of a table among the candidates. Rows are read through
/// the cache of the training, in steps: first the rows of the candidates, which remain in memory,
/// then the rows of blocks of edges. The table does not change, and the result does not depend on
/// memory or threads. Threads: one call at a time. Ownership: `job` must outlive it.
class TableValidation {
 public:
  explicit TableValidation(const TableJob& job);

  /// Memory of an object and a call, in bytes; 0 without a validation set.
  static std::uint64_t Bytes(const TableJob& job, std::uint32_t threads);

  /// Returns the mean of 1 / rank over the edges and both ends (SampledRanks). `relations`: as
  /// FirstRelations; `lookahead`: steps of a superbatch. No step of the cache may be left. Errors:
  /// as TableCache; kInterrupted.
  Result<double> Measure(TableCache& cache, std::span<const float> relations,
                         std::uint64_t lookahead, TaskArena& arena, const JobControl& control);

 private:
  Status ReadCandidates(TableCache& cache);
  std::vector<CacheKey> KeysOf(std::span<const VertexPair> edges) const;
  double RankBlock(std::span<const VertexPair> edges, const TableRows& rows,
                   std::span<const float> relations);
  std::uint32_t PlaceOf(VertexId vertex, const TableRows& rows) const;

  const TableJob& job_;
  const std::size_t block_edges_;
  std::vector<CacheKey> candidate_rows_;                // of the table, ascending
  std::vector<std::vector<std::uint32_t>> candidates_;  // by type: their places in values_
  std::vector<float> values_;  // [candidate_rows_, then the rows of a block; dim]
};

}  // namespace internal
}  // namespace rhizome
