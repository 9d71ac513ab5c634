#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/chunk_array.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// The checksum of each row of an array (RowCrc), loaded from its sidecar and verified. Load reads
/// the whole sidecar; with Open, each chunk is loaded when one of its rows is first needed. Chunks
/// of a bound array without a file have no checksums. Memory: 4 bytes per loaded row.
/// Threads: any. Ownership: the sidecar's file system must outlive it.
class RowSums {
 public:
  /// Loads all checksums. Errors: kCorruption, the sidecar is damaged or belongs to another array;
  /// kIoError.
  static Result<std::shared_ptr<const RowSums>> Load(const ArrayEntry& array,
                                                     const ChunkArray& sidecar);

  /// Loads nothing yet. Errors: kCorruption, the sidecar belongs to another array, or a file has a
  /// wrong length.
  static Result<std::shared_ptr<const RowSums>> Open(const ArrayEntry& array,
                                                     std::unique_ptr<ChunkArray> sidecar);

  /// Ensures that the checksum of `row` is loaded. Errors: kInvalidArgument, no such row, or it
  /// would have to be loaded in a forked child; kCorruption, also if the row's chunk has no
  /// checksums; kIoError.
  Status Need(std::uint64_t row) const {
    if (row >= rows_) return NoRow(row);
    const std::uint64_t slot = slots_.Find(row / chunk_rows_);
    if (slot == ChunkSlots::kNone) return NoSum(row);
    if (loaded_[slot].load(std::memory_order_acquire)) return Status::Ok();
    return LoadChunk(slot);
  }

  /// Returns the checksum of a row; Need(row) must have succeeded before.
  std::uint32_t operator[](std::uint64_t row) const {
    if (slots_.all()) return sums_[row];
    return sums_[slots_.Find(row / chunk_rows_) * chunk_rows_ + row % chunk_rows_];
  }

 private:
  RowSums(const ArrayEntry& array, const ChunkArray& sidecar);
  Status NoRow(std::uint64_t row) const;
  Status NoSum(std::uint64_t row) const;
  Status LoadChunk(std::uint64_t slot) const RHIZOME_EXCLUDES(mutex_);
  Status LoadChunkOf(const ChunkArray& sidecar, std::uint64_t slot) const;

  const std::uint64_t rows_;
  const std::uint64_t chunk_rows_;
  const ChunkSlots slots_;                       // of the sidecar
  const std::unique_ptr<std::uint32_t[]> sums_;  // not initialised: untouched pages use no memory
  const std::unique_ptr<std::atomic<bool>[]> loaded_;
  std::unique_ptr<const ChunkArray> sidecar_;  // null if everything is loaded
  const OwnerProcess owner_;                   // in a fork, mutex_ may remain locked forever
  mutable Mutex mutex_;                        // held by the thread that loads
};

}  // namespace internal
}  // namespace rhizome
