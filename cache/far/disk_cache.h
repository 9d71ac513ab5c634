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
  Path folder;  ///< where its files go; made if need be, others' files are let be
  std::uint64_t chunk_rows = 512;  ///< of its own chunks
  std::uint32_t in_flight = 32;    ///< chunks of the source that are read at once
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;  ///< while it is filled, beside the reads
};

struct DiskCacheStats {
  std::uint64_t source_reads = 0;  ///< chunks of the source, each once
  std::uint64_t source_bytes = 0;
  std::uint64_t disk_bytes = 0;  ///< that it takes
  double fill_seconds = 0;
};

/// The static cache of a worker (GLISP, section III-D): a copy, on a local disk, of all rows that
/// its targets are computed from, made before a layer from a source that is far away. After that
/// every read is local: there is no way to miss. Rows stand where the worker's layout puts them
/// (cache/pass_layout.h), not as in the source, so that its blocks read few chunks; the source is
/// not touched in that order, but chunk by chunk, each once.
///
/// A source that is local is not to be copied: its chunks cost what the copy's would.
///
/// Every chunk has a CRC-32C, held in memory, and is checked when it is read. Nothing outlives the
/// object: its file is removed with it. Disk: the rows; while it is filled, twice as much where
/// they are more than memory_bytes.
///
/// Threads: const functions, from many. Ownership: `fs` must outlive it.
class DiskCache {
 public:
  /// Fills a cache with `rows` (ascending, distinct), row i at position[i], a permutation of
  /// [0, rows.size()). Errors: kInvalidArgument, a row that the source does not have, rows or
  /// positions that are not as said, or chunks larger than the memory; kCorruption, the source
  /// delivers too few bytes or has changed meanwhile; kOutOfSpace; kInterrupted; those of the
  /// source, naming it. Then nothing is left.
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

  /// Copies a chunk's rows to `out`, of exactly their size. Errors: kInvalidArgument, a chunk that
  /// no row is in; kCorruption; kIoError.
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

/// The caches of workers, one after another: while one is used, the next is filled on a thread of
/// its own. Threads: one at a time.
class DiskCachesAhead {
 public:
  using Make = std::function<Result<std::unique_ptr<DiskCache>>(std::size_t worker)>;

  /// Begins with worker 0. `make` runs on another thread, one call at a time, and must not outlive
  /// what it uses: the destructor waits for it, so cancel what it does first.
  DiskCachesAhead(std::size_t workers, Make make);
  ~DiskCachesAhead();

  /// The next worker's cache, once it is filled; the one after it is begun. Errors:
  /// kInvalidArgument, there are no more workers; those of `make`; there is no next one then.
  Result<std::unique_ptr<DiskCache>> Next();

  /// What Next waited for caches that were not filled yet, the first one not counted, behind which
  /// nothing could be computed.
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
