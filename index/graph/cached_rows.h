#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "index/topology/block_cache.h"
#include "index/topology/file_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Reads rows of an array of one generation through a BlockCache, in blocks of about 4 KiB.
///
/// For an array in layout kRow, all missing blocks of a call are read together and verified against
/// the sidecar, which is held in memory (4 bytes a row, part of the cache's memory). Otherwise a
/// whole chunk, or an inner chunk of a shard, must be decoded and verified; its other blocks are
/// cached if frames are free.
/// Memory: the cache, the memory of FileRows, and up to kMaxMissBytes for each thread.
/// Threads: any.
/// Ownership: the store's file system and metrics must outlive it.
class CachedRows {
 public:
  /// Errors: kCorruption and kIoError of the sidecar.
  static Result<std::shared_ptr<const CachedRows>> Open(const Store& store,
                                                        std::unique_ptr<ChunkArray> array,
                                                        std::uint64_t memory_bytes);

  const ArrayEntry& entry() const { return array_->entry(); }

  /// Maximum number of rows in one call of Read for a caller that checks a deadline between calls.
  static constexpr std::size_t kRowsPerTurn = 1024;

  /// Copies rows; it reorders the targets. Returns the number of rows that were in memory.
  /// Errors: kCorruption; kIoError.
  Result<std::uint64_t> Read(std::span<RowTarget> targets) const;

  /// Fills free frames with the blocks whose rows have the highest degrees. `tick(done, total)`, in
  /// bytes, is called between pieces of work.
  /// Errors: as Read; any error of `tick`.
  Status Warm(const std::function<std::uint64_t(std::uint64_t row)>& degree,
              const std::function<Status(std::uint64_t done, std::uint64_t total)>& tick) const;

  /// Returns the memory that caches the whole array.
  static std::uint64_t FullBytes(const ArrayEntry& entry);

  /// Returns the decoded bytes of the smallest readable unit of an array without row checksums.
  static std::uint64_t ReadBytes(const ArrayEntry& entry);

 private:
  CachedRows(std::shared_ptr<const ChunkArray> array, std::uint64_t rows_per_block,
             std::shared_ptr<const RowSums> sums, const BlockCache::Options& options)
      : array_(std::move(array)),
        files_(array_, std::move(sums)),
        rows_per_block_(rows_per_block),
        cache_(options) {}

  std::uint64_t RowsInBlock(std::uint64_t block) const;
  std::uint64_t blocks_per_chunk() const { return entry().chunk_rows / rows_per_block_; }
  std::uint64_t BlockOf(const RowTarget& target) const {
    return static_cast<std::uint64_t>(target.row) / rows_per_block_;
  }
  bool ReadCached(const RowTarget& target) const;
  void Prefetch(const RowTarget& target) const;
  Status ReadRun(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) const;
  Status ReadMisses(std::span<RowTarget> targets) const;
  Status ReadBlocks(std::span<const RowTarget> targets, std::uint64_t blocks) const;
  Result<std::uint64_t> ReadThroughParts(std::span<RowTarget> targets) const;
  Result<std::uint64_t> ReadThroughPart(std::span<const RowTarget> targets) const;
  void KeepBlocks(std::uint64_t first_block, std::span<const std::byte> bytes) const;
  Status WarmByReads(std::uint64_t first_block, const std::vector<bool>& chosen) const;
  Status WarmChunk(std::uint64_t chunk, const std::vector<bool>& chosen) const;

  static constexpr std::uint64_t kMaxMissBytes = std::uint64_t{4} << 20;

  const std::shared_ptr<const ChunkArray> array_;
  const FileRows files_;
  const std::uint64_t rows_per_block_;
  mutable BlockCache cache_;
  mutable std::array<Mutex, 8> decoding_;  // by part: one thread decodes it while the others wait
};

}  // namespace internal
}  // namespace rhizome
