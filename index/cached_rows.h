#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/block_cache.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// Rows of an array of one generation through a BlockCache, in blocks of about 4 KiB.
///
/// Of an array in layout kRow a missing block alone is read, and checked against the sidecar, which
/// is held in memory (4 bytes a row, of the cache's memory). Else a chunk, or an inner chunk of a
/// shard, is the least that can be decoded and checked: its other blocks are kept where frames are
/// free.
///
/// Threads: any. Ownership: the store's file system and metrics must outlive it.
class CachedRows {
 public:
  /// Errors: kCorruption, kIoError: the sidecar.
  static Result<std::shared_ptr<const CachedRows>> Open(const Store& store,
                                                        std::unique_ptr<ChunkArray> array,
                                                        std::uint64_t memory_bytes);

  const ArrayEntry& entry() const { return array_->entry(); }

  /// Copies a row; `hit` says whether it was in memory. Errors: kCorruption; kIoError.
  Status Read(std::uint64_t row, std::span<std::byte> out, bool& hit) const;

  /// Fills free frames with the blocks whose rows have the highest degrees. `tick` is called
  /// between pieces of work with what is loaded, and what will be, in bytes. Errors: as Read;
  /// those of `tick`.
  Status Warm(const std::function<std::uint64_t(std::uint64_t row)>& degree,
              const std::function<Status(std::uint64_t done, std::uint64_t total)>& tick) const;

  /// Memory with which everything fits.
  static std::uint64_t FullBytes(const ArrayEntry& entry);

  /// The decoded bytes of the least that is read of an array without row checksums.
  static std::uint64_t ReadBytes(const ArrayEntry& entry);

 private:
  CachedRows(std::unique_ptr<ChunkArray> array, std::uint64_t rows_per_block,
             std::vector<std::uint32_t> row_crcs, const BlockCache::Options& options)
      : array_(std::move(array)),
        rows_per_block_(rows_per_block),
        row_crcs_(std::move(row_crcs)),
        cache_(options) {}

  std::uint64_t RowsInBlock(std::uint64_t block) const;
  std::uint64_t blocks_per_chunk() const { return entry().chunk_rows / rows_per_block_; }
  Status ReadBlocks(std::uint64_t first_row, std::uint64_t rows, std::span<std::byte> out) const;
  Status ReadThroughChunk(std::uint64_t block, std::uint64_t row, std::span<std::byte> out,
                          bool& hit) const;
  void KeepBlocks(std::uint64_t first_block, std::span<const std::byte> bytes) const;
  Status WarmByReads(std::uint64_t first_block, const std::vector<bool>& chosen) const;
  Status WarmChunk(std::uint64_t chunk, const std::vector<bool>& chosen) const;

  const std::unique_ptr<const ChunkArray> array_;
  const std::uint64_t rows_per_block_;
  const std::vector<std::uint32_t> row_crcs_;  // empty: only whole chunks can be checked
  mutable BlockCache cache_;
  mutable std::array<Mutex, 8> decoding_;  // by chunk: one thread decodes it, the others wait
};

}  // namespace rhizome
