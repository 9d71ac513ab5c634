#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {
class ArrayFiles;
class RowSums;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// One row to read and where to put it: row_bytes() bytes at `out`.
struct RowTarget {
  std::int64_t row = 0;
  std::byte* out = nullptr;
};

struct RowReaderOptions {
  IoQueueOptions io;

  /// O_DIRECT where the file system grants it.
  bool direct = true;

  /// Two wanted ranges that are at most this far apart are read as one. A read costs a fixed time
  /// plus bytes over bandwidth, so a small gap is cheaper to read than to skip.
  std::uint64_t gap_bytes = 4096;

  /// Longest single read, in bytes.
  std::uint64_t max_read_bytes = 256 << 10;

  /// Memory that reads land in before the rows are checked and copied out.
  std::size_t staging_bytes = std::size_t{16} << 20;
};

struct RowReaderStats {
  std::uint64_t rows = 0;        ///< rows delivered
  std::uint64_t reads = 0;       ///< reads issued
  std::uint64_t read_bytes = 0;  ///< bytes of those reads
  double mean_depth = 0;
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;
};

/// Random rows of an array in layout kRow: sorted, coalesced, read in deep batches, each row
/// checked against the sidecar, which is loaded and verified by Open (4 bytes a row of memory).
/// Threads: one at a time; each reading thread has one of its own.
/// Ownership: `array` and `sidecar` are read during Open only; their FileSystem must outlive it.
class RowReader {
 public:
  /// Errors: kInvalidArgument, not layout kRow or options out of range; kCorruption, a bad sidecar.
  static Result<std::unique_ptr<RowReader>> Open(const ChunkArray& array, const ChunkArray& sidecar,
                                                 const RowReaderOptions& options);

  /// The same with files and checksums that other readers share; checksums may be loaded as they
  /// are needed: then their errors are those of Read. `options.direct` is that of the files.
  static Result<std::unique_ptr<RowReader>> Open(const ChunkArray& array,
                                                 std::shared_ptr<const RowSums> sums,
                                                 std::shared_ptr<ArrayFiles> files,
                                                 const RowReaderOptions& options);
  ~RowReader();

  /// One more reader of the same rows, with the same options; sidecar and open files are shared.
  Result<std::unique_ptr<RowReader>> Another() const;

  /// Reads all targets; sorts them by row (duplicates are allowed and read once).
  /// Errors: kInvalidArgument, a row out of range; kCorruption, naming array and row; kIoError. On
  /// error the targets' memory is unspecified.
  Status Read(std::span<RowTarget> targets);

  std::uint64_t row_bytes() const;
  std::uint64_t row_count() const;
  RowReaderStats stats() const;

 private:
  class Impl;
  explicit RowReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
