#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/tables/row_table.h"
#include "gnn/tables/table_job.h"
#include "index/base/parallel.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Ranks the validation edges of a training of a table among the candidates. Rows are read from the
/// table's file: first the rows of the candidates, which remain in memory during a call, then the
/// rows of blocks of edges. The result does not depend on memory or threads.
/// Threads: one call at a time. Ownership: `job` must outlive it.
class TableValidation {
 public:
  explicit TableValidation(const TableJob& job);

  /// Memory of an object and a call, in bytes; 0 without a validation set.
  static std::uint64_t Bytes(const TableJob& job, std::size_t row_bytes, std::uint32_t threads);

  /// Returns the mean of 1 / rank over the edges and both ends (SampledRanks). `relations`: as
  /// FirstRelations. Errors: as RowTable::Read; kInterrupted.
  Result<double> Measure(RowTable& table, std::span<const float> relations, TaskArena& arena,
                         const JobControl& control);

 private:
  std::vector<Row> RowsOf(std::span<const VertexPair> edges) const;
  Status ReadValues(RowTable& table, std::span<const Row> rows, std::size_t place);
  double RankBlock(std::span<const VertexPair> edges, std::span<const Row> rows,
                   std::span<const float> relations) const;
  std::uint32_t PlaceOf(VertexId vertex, std::span<const Row> rows) const;

  const TableJob& job_;
  std::vector<Row> candidate_rows_;                     // of the table, ascending
  std::vector<std::vector<std::uint32_t>> candidates_;  // by type: their places in values_
  std::vector<float> values_;      // [candidate_rows_, then the rows of a block; dim]
  std::vector<std::byte> stored_;  // rows with the state of the optimiser
};

}  // namespace internal
}  // namespace rhizome
