#include "gnn/tables/table_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/tables/table_cache.h"
#include "gnn/tables/table_validation.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMinLookahead = 2;    // batches
constexpr std::uint64_t kMaxLookahead = 256;  // batches

/// Bytes of a batch that waits, and of its accesses in the schedule.
std::uint64_t WaitingBytes(const TableJob& job) {
  constexpr std::uint64_t kAccessBytes = sizeof(CacheKey) + 20;
  return job.batches->max_rows() * kAccessBytes + job.batching.batch_size * sizeof(VertexPair) +
         2 * job.batching.negatives * sizeof(VertexId);
}

/// Memory of a RowTable beside its staging memory: less than 5 bytes for each block.
std::uint64_t BookkeepingBytes(const RowTableOptions& table) {
  const std::uint64_t block_rows =
      std::max<std::uint64_t>(1, RowTable::kBlockBytes / table.row_bytes);
  return 5 * (table.rows / block_rows + 1);
}

/// Memory of a step, and of the table's file.
std::uint64_t FixedBytes(const TableJob& job, const RowTableOptions& table, std::uint32_t threads) {
  const std::uint64_t values = 2 * job.batches->max_rows() * job.dim() * sizeof(float);
  const std::uint64_t types = job.graph->vertex_types().size();
  return values + table.staging_bytes + BookkeepingBytes(table) +
         LinkStep::Bytes(job.batching, types, job.dim()) +
         TableValidation::Bytes(job, table.row_bytes, threads) +
         (job.filter ? job.filter->bytes() : 0);
}

}  // namespace

RowTableOptions ShapeOfTable(const TableJob& job) {
  RowTableOptions table;
  table.rows = job.batches->table_order().size();
  table.row_bytes =
      (job.dim() + RowOptimizer::StateFloats(job.optimizer.kind, job.dim())) * sizeof(float);
  return table;
}

Result<TableMemory> DivideTableMemory(const TableJob& job, const RowTableOptions& table,
                                      const ResourceOptions& resources, std::uint64_t held_bytes) {
  const std::uint64_t memory_bytes = resources.memory_bytes;
  const std::uint64_t max_rows = job.batches->max_rows();
  const std::uint64_t least = TableCache::BytesFor(1, table.row_bytes, max_rows);
  const std::uint64_t all = TableCache::BytesFor(table.rows, table.row_bytes, max_rows);
  const std::uint64_t waiting = WaitingBytes(job);
  const std::uint64_t longest = std::min(kMaxLookahead, job.batches->batches());
  const std::uint64_t fixed = FixedBytes(job, table, resources.threads);
  const std::uint64_t needed = held_bytes + fixed + least + kMinLookahead * waiting;
  TableMemory memory{.lookahead = longest,
                     .cache_bytes = all,
                     .held_bytes = held_bytes,
                     .fixed_bytes = fixed,
                     .least_bytes = needed,
                     // An eighth of what is beyond the least may go to batches that wait.
                     .all_bytes = needed + (all - least) + (all - least) / 7 + 1};
  if (memory_bytes != 0) {
    if (memory_bytes < needed)
      return Fail(Status::OutOfMemory(fmt::format(
          "`memory_bytes` is {}, but a training of this table needs at least {}: {} for the graph, "
          "and rows of two batches; smaller `batch_size` or `negatives` need less",
          memory_bytes, needed, held_bytes)));
    // An eighth of what remains is for longer superbatches.
    const std::uint64_t spare = memory_bytes - needed;
    memory.lookahead =
        std::max(kMinLookahead, std::min(kMinLookahead + spare / 8 / waiting, longest));
    memory.cache_bytes =
        std::min(all, least + spare - (memory.lookahead - kMinLookahead) * waiting);
  }
  memory.lookahead_bytes = memory.lookahead * waiting;
  memory.cached_rows = TableCache::FramesFor(
      {.memory_bytes = memory.cache_bytes, .max_step_rows = max_rows}, table.row_bytes, table.rows);
  return memory;
}

}  // namespace internal
}  // namespace rhizome
