#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/cache/chunk_source.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

struct DiskCacheOptions {
  Path folder;                     ///< created if need be; other files in it are left alone
  std::uint64_t chunk_rows = 512;  ///< rows in a chunk of the cache
  std::uint32_t in_flight = 32;    ///< source chunks that are read at once
  /// while filling, without the chunks in flight
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
};

struct DiskCacheStats {
  std::uint64_t source_reads = 0;  ///< source chunks read, each once
  std::uint64_t source_bytes = 0;
  std::uint64_t disk_bytes = 0;  ///< size of the cache file
  double fill_seconds = 0;
};

/// The static cache of a worker (GLISP, section III-D): a copy on a local disk of all rows that its
/// targets are computed from, made before a layer from a remote source. After that every read is
/// local and none can miss. Rows are placed by the worker's layout (cache/layout/pass_layout.h),
/// not as in the source, so that its blocks read few chunks. The source is read chunk by chunk,
/// each once. A local source should not be copied: reading its chunks costs as much as reading the
/// copy's.
///
/// Every chunk has a CRC-32C, held in memory, and is verified when it is read. The file is removed
/// with the object. Disk: the bytes of the rows; while it is filled up to twice as much, if they
/// exceed memory_bytes.
///
/// Threads: const functions may run on many threads.
/// Ownership: `fs` must outlive it.
class DiskCache {
 public:
  /// Fills a cache with `rows` (ascending, distinct); row i goes to position[i], a permutation of
  /// [0, rows.size()). Errors: kInvalidArgument, a row that the source does not have, rows or
  /// positions that are not as described, or chunks larger than the memory; kCorruption, the source
  /// delivers too few bytes or has changed meanwhile; kOutOfSpace; kInterrupted; those of the
  /// source, naming it. On error no file is left.
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
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;  ///< 0: there is no such chunk

  /// Copies a chunk's rows to `out`, which has exactly their size. Errors: kInvalidArgument, no
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

/// Makes the caches of workers one after another: while one is used, the next is filled on another
/// thread.
/// Threads: one at a time.
class DiskCachesAhead {
 public:
  using Make = std::function<Result<std::unique_ptr<DiskCache>>(std::size_t worker)>;

  /// Begins to fill the cache of worker 0. `make` runs on another thread, one call at a time. The
  /// destructor waits for the call in progress, so cancel it first.
  DiskCachesAhead(std::size_t workers, Make make);
  ~DiskCachesAhead();

  /// Waits for the next worker's cache, returns it and begins the one after it. Errors:
  /// kInvalidArgument, there are no more workers; those of `make`, after which no further cache is
  /// begun.
  Result<std::unique_ptr<DiskCache>> Next();

  /// Seconds that Next waited for caches that were not filled yet, without the first, during whose
  /// filling there is nothing to compute.
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

}  // namespace rhizome::inline internal
