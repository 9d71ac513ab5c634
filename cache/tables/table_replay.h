#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Counts of a TableReplay.
struct TableReplayCounts {
  std::uint64_t rows_requested = 0;
  std::uint64_t rows_read = 0;     ///< as TableCacheStats::rows_read
  std::uint64_t rows_written = 0;  ///< changed rows that left the cache
};

/// Counts the rows that a TableCache reads and writes, from the rows of its steps alone: without
/// memory for rows, and without I/O. It assumes that every step is updated. A TableCache also
/// writes rows at checkpoints, and others of the blocks that it writes; it then need not write
/// these later. Memory: 20 bytes for each frame, and 20 for each access of a superbatch.
/// Threads: one at a time.
class TableReplay {
 public:
  /// `frame_count` as TableCache::FramesFor; `rows` of the table.
  TableReplay(std::uint32_t frame_count, std::uint64_t rows);

  /// Counts a superbatch. Errors: as TableCache::Start.
  Status Add(const Trace& trace);

  const TableReplayCounts& counts() const { return counts_; }

 private:
  void Fill(std::span<const PrefillEntry> prefill);
  void Count(std::span<const CacheKey> keys, const StepPlan& plan);

  const std::uint64_t rows_;
  std::vector<CacheKey> frames_;     // the rows that the last schedule leaves in the frames
  std::vector<CacheKey> row_of_;     // by frame; kNoRow: empty
  std::vector<std::uint8_t> dirty_;  // by frame: the row was changed since it was read
  TableReplayCounts counts_;
};

}  // namespace internal
}  // namespace rhizome
