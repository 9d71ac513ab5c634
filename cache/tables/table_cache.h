#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cache/tables/row_optimizer.h"
#include "cache/tables/row_table.h"
#include "rhizome/export.h"
#include "rhizome/feature_cache.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

struct TableCacheOptions {
  /// Memory of the cache, in bytes: cached rows, rows of two steps, rows that wait to be written,
  /// and 80 bytes for each row in memory. The table's own memory, and 20 bytes for each access of
  /// the superbatch, come in addition.
  std::uint64_t memory_bytes = 0;

  /// Max number of rows of a step.
  std::uint64_t max_step_rows = 0;
};

/// Counts since a cache was opened.
struct TableCacheStats {
  std::uint64_t rows_requested = 0;
  std::uint64_t rows_read = 0;  ///< requested or prefilled rows that were not in memory
  /// Rows written: those that left memory, all changed ones at checkpoints, and others of the same
  /// blocks.
  std::uint64_t rows_written = 0;
  double wait_seconds = 0;  ///< time in which steps waited for reads and writes
};

class TableCache;

/// The rows of a step in the cache's memory. Row i of the step begins at row(i): its value, then
/// the state of the optimiser. Valid until TableCache::Release.
class TableRows {
 public:
  std::size_t size() const { return slots_.size(); }
  std::span<const CacheKey> keys() const { return keys_; }  ///< the rows' numbers in the table
  std::span<const float> row(std::size_t i) const {
    return {table_ + slots_[i] * row_floats_, row_floats_};
  }

  /// Copies the values to `out`, shape [size(), dim].
  void CopyValues(std::size_t dim, std::span<float> out) const;

 private:
  friend class TableCache;
  const float* table_ = nullptr;
  std::size_t row_floats_ = 0;
  std::span<const SlotId> slots_;
  std::span<const CacheKey> keys_;
};

/// A table that learns and may be larger than memory: a cache of its rows, whose accesses are known
/// one superbatch ahead, so that the rows that are needed again soonest remain (Belady). The rows
/// of a step are updated in place, and the next step sees them. A changed row that leaves the cache
/// is written back, in batches, sorted and coalesced as reads are. While a step computes, the rows
/// of the next one are read on another thread; those whose last update is not written yet are read
/// after it is. No bit of the table depends on the memory or on the threads.
///
/// A trainer works like this, with distinct rows for each step:
///
///     cache.Start(std::move(trace));               // rows of the next steps, a superbatch
///     while (cache.steps_left() > 0) {
///       cache.Acquire(rows);                       // waits for its rows
///       ...                                        // losses and gradients from rows.row(i)
///       cache.Update(optimizer, step, gradients);  // [rows.size(), dim], see gradient_sums.h
///       cache.Release();
///     }
///     cache.Checkpoint(progress);                  // between any two steps
///
/// After any error the cache fails; the job opens the table again, which returns to a checkpoint.
/// Threads: one at a time. Ownership: owns the table.
class TableCache {
 public:
  /// Errors: kOutOfMemory, `memory_bytes` holds no cached row beside the rows of steps, or no
  /// thread can be started; kInvalidArgument, rows are not of whole floats.
  static Result<std::unique_ptr<TableCache>> Open(std::unique_ptr<RowTable> table,
                                                  const TableCacheOptions& options);
  ~TableCache();

  /// Returns the `memory_bytes` of a cache in which `cached_rows` rows remain, or very few more.
  static std::uint64_t BytesFor(std::uint64_t cached_rows, std::size_t row_bytes,
                                std::uint64_t max_step_rows);

  /// Returns the frame_count of a cache of a table with `rows` rows.
  static std::uint32_t FramesFor(const TableCacheOptions& options, std::size_t row_bytes,
                                 std::uint64_t rows);

  /// Starts the steps of a superbatch and fills the cache. No step may be held. Errors: as
  /// RowTable::Read and Write; kInvalidArgument, a row out of range or twice in a step, more than
  /// max_step_rows rows in a step, or steps of the previous superbatch are left.
  Status Start(Trace trace);

  /// Number of steps of the superbatch that were not acquired yet.
  std::uint64_t steps_left() const;

  /// Makes `rows` the rows of the next step, and begins to read the rows of the step after it.
  /// Errors: as Start; kInvalidArgument, no step is left.
  Status Acquire(TableRows& rows);

  /// Updates all rows of the step with `gradients`, shape [rows, dim]. `step` counts from 1.
  /// Errors: kInvalidArgument, a wrong size, or no step is held.
  Status Update(const RowOptimizer& optimizer, std::uint64_t step,
                std::span<const float> gradients);

  /// Ends the step. Rows of a step that was not updated are unchanged. Errors: as Start.
  Status Release();

  /// Writes all changed rows, and makes them and `progress` what RowTable::Open returns after a
  /// crash. No step may be held. Errors: as RowTable::Checkpoint.
  Status Checkpoint(std::span<const std::byte> progress);

  /// Writes all changed rows, then returns the table, for reading all of it. No step may be held.
  /// Errors: as RowTable::Write.
  Result<RowTable*> Flush();

  std::uint32_t frame_count() const;  ///< number of rows that remain cached
  std::uint64_t rows() const;
  TableCacheStats stats() const;
  RowTableStats table_stats();  ///< waits for all reads and writes

 private:
  class Impl;
  explicit TableCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
