#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "cache/disk_cache/chunk_source.h"
#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

struct DiskCacheOptions {
  Path folder;                     ///< created if missing; other files in it are not touched
  std::uint64_t chunk_rows = 512;  ///< rows per chunk of the cache
  std::uint32_t in_flight = 32;    ///< number of source chunks that are read concurrently
  /// memory used while filling, excluding the chunks in flight
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
};

struct DiskCacheStats {
  std::uint64_t source_reads = 0;  ///< source chunks read; each is read once
  std::uint64_t source_bytes = 0;
  std::uint64_t disk_bytes = 0;  ///< size of the cache file
  double fill_seconds = 0;
};

/// Static cache of one worker (GLISP, section III-D): a copy on a local disk of all rows that the
/// worker's targets are computed from. It is filled before a layer that reads from a remote source;
/// after that every read is local and none can miss. Rows are ordered by the worker's layout
/// (cache/layout/pass_layout.h) instead of the source's order, so that the worker's blocks
/// read few chunks. Each source chunk is read once. Copying a local source brings no benefit,
/// because reading its chunks costs as much as reading the copy.
///
/// Every chunk has a CRC-32C, which is kept in memory and verified on each read. The destructor
/// removes the file. Disk space: the bytes of the rows, and up to twice as much during the fill if
/// they exceed memory_bytes.
///
/// Threads: const functions may be called concurrently.
/// Ownership: `fs` must outlive this object.
class DiskCache {
 public:
  /// Fills a cache with `rows` (ascending, distinct). Row i is stored at position[i]; the positions
  /// are a permutation of [0, rows.size()). Errors: kInvalidArgument, a row is not in the source,
  /// rows or positions violate the contract above, or a chunk is larger than the memory;
  /// kCorruption, the source delivers too few bytes or changed during the fill; kOutOfSpace;
  /// kInterrupted; any error of the source, with its name. On error no file is left behind.
  static Result<std::unique_ptr<DiskCache>> Fill(FileSystem& fs, ChunkSource& source,
                                                 std::span<const Row> rows,
                                                 std::span<const std::uint32_t> position,
                                                 const DiskCacheOptions& options,
                                                 const JobControl& control);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  std::uint64_t row_count() const { return row_count_; }
  std::uint64_t chunk_count() const { return crcs_.size(); }
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;  ///< 0 if there is no such chunk

  /// Copies a chunk's rows to `out`, whose size must match exactly. Errors: kInvalidArgument, no
  /// such chunk or a wrong size; kCorruption; kIoError.
  Status ReadChunk(std::uint64_t chunk, std::span<std::byte> out) const;

  const DiskCacheStats& stats() const { return stats_; }

 private:
  friend class DiskCacheFiller;
  DiskCache(FileSystem& fs, std::uint64_t row_count, std::uint64_t row_bytes,
            std::uint64_t chunk_rows)
      : fs_(fs), row_count_(row_count), row_bytes_(row_bytes), chunk_rows_(chunk_rows) {}

  FileSystem& fs_;
  const std::uint64_t row_count_;
  const std::uint64_t row_bytes_;
  const std::uint64_t chunk_rows_;
  Path path_;
  std::unique_ptr<ReadableFile> file_;
  std::vector<std::uint32_t> crcs_;  // by chunk
  DiskCacheStats stats_;
};

/// Creates the caches of workers one after another. While one cache is in use, the next is filled
/// on another thread.
/// Threads: not thread-safe.
class DiskCachesAhead {
 public:
  using Make = std::function<Result<std::unique_ptr<DiskCache>>(std::size_t worker)>;

  /// Starts to fill the cache of worker 0. `make` runs on another thread, one call at a time. The
  /// destructor waits for the call in progress, so cancel it first.
  DiskCachesAhead(std::size_t workers, Make make);
  ~DiskCachesAhead();

  /// Waits for the next worker's cache, returns it and starts to fill the following one. Errors:
  /// kInvalidArgument, there are no more workers; any error of `make`, after which no further cache
  /// is started.
  Result<std::unique_ptr<DiskCache>> Next();

  /// Seconds that Next waited for unfinished caches, excluding the first one: while that is filled,
  /// there is no computation to overlap it with.
  double unhidden_seconds() const { return unhidden_seconds_; }
  double first_seconds() const { return first_seconds_; }

 private:
  void Begin();

  const std::size_t workers_;
  const Make make_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::future<Result<std::unique_ptr<DiskCache>>> filling_;
  double unhidden_seconds_ = 0;
  double first_seconds_ = 0;
};

}  // namespace internal
}  // namespace rhizome
