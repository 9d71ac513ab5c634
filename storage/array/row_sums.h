#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/process.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The checksum of each row of an array (RowCrc), out of its sidecar: verified, and in memory.
/// Either all of it is loaded at once, or a chunk of it when a row is first asked for, and then
/// kept. Memory: 4 bytes a row of what was loaded.
/// Threads: any. Ownership: the sidecar's file system must outlive it.
class RowSums {
 public:
  /// Loads all of it. Errors: kCorruption, a damaged sidecar, or one of another array; kIoError.
  static Result<std::shared_ptr<const RowSums>> Load(const ArrayEntry& array,
                                                     const ChunkArray& sidecar);

  /// Loads nothing yet. Errors: kCorruption, the sidecar of another array.
  static Result<std::shared_ptr<const RowSums>> Open(const ArrayEntry& array,
                                                     std::unique_ptr<ChunkArray> sidecar);

  /// Makes sure that the sum of `row` is there. Errors: kInvalidArgument, no such row; kCorruption;
  /// kIoError.
  Status Need(std::uint64_t row) const {
    if (row >= rows_) return NoRow(row);
    const std::uint64_t chunk = row / chunk_rows_;
    if (loaded_[chunk].load(std::memory_order_acquire)) return Status::Ok();
    return LoadChunk(chunk);
  }

  /// Of a row that Need was asked for.
  std::uint32_t operator[](std::uint64_t row) const { return sums_[row]; }

 private:
  RowSums(const ArrayEntry& array, const ChunkArray& sidecar);
  Status NoRow(std::uint64_t row) const;
  Status LoadChunk(std::uint64_t chunk) const RHIZOME_EXCLUDES(mutex_);
  Status LoadChunkOf(const ChunkArray& sidecar, std::uint64_t chunk) const;

  const std::uint64_t rows_;
  const std::uint64_t chunk_rows_;
  const std::unique_ptr<std::uint32_t[]> sums_;  // pages that are not used are not there
  const std::unique_ptr<std::atomic<bool>[]> loaded_;
  std::unique_ptr<const ChunkArray> sidecar_;  // null where all is loaded
  const OwnerProcess owner_;                   // a lock may be held for ever in a fork
  mutable Mutex mutex_;                        // one thread loads
};

}  // namespace rhizome::inline internal
