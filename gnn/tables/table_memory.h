#pragma once

#include <cstdint>

#include "cache/tables/row_table.h"
#include "gnn/tables/table_job.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// How the memory of a training of a table is divided.
struct TableMemory {
  std::uint64_t lookahead = 1;        ///< batches of a superbatch
  std::uint64_t lookahead_bytes = 0;  ///< of these batches and their schedule
  std::uint64_t cache_bytes = 0;
  std::uint32_t cached_rows = 0;  ///< rows that remain in memory
  std::uint64_t held_bytes = 0;   ///< what is in memory before: the graph
  std::uint64_t fixed_bytes = 0;  ///< a step, and the bookkeeping of the table
  std::uint64_t least_bytes = 0;  ///< the smallest `memory_bytes` for this table
  std::uint64_t all_bytes = 0;    ///< the `memory_bytes` with which all rows remain in memory
};

/// Returns the rows of the table and their size.
RowTableOptions ShapeOfTable(const TableJob& job);

/// Divides the memory: what is held already, a step, the batches of a superbatch, and the cache,
/// which gets the rest, at most all rows. `memory_bytes` 0: no limit.
/// Errors: kOutOfMemory, `memory_bytes` is too small, with the number that suffices.
Result<TableMemory> DivideTableMemory(const TableJob& job, const RowTableOptions& table,
                                      const ResourceOptions& resources, std::uint64_t held_bytes);

}  // namespace internal
}  // namespace rhizome
