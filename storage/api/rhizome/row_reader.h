#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/io_queue.h"
#include "rhizome/result.h"

namespace rhizome {
inline namespace internal {
class ArrayFiles;
class RowSums;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// A row to read, and its destination: row_bytes() bytes at `out`.
struct RowTarget {
  std::int64_t row = 0;
  std::byte* out = nullptr;
};

struct RowReaderOptions {
  IoQueueOptions io;

  /// Reads with O_DIRECT if the file system supports it.
  bool direct = true;

  /// Two requested ranges that are at most this far apart, in bytes, are read as one. The cost of a
  /// read is a fixed time plus bytes divided by bandwidth (ReadCost), so reading a small gap is
  /// cheap compared with another read.
  std::uint64_t gap_bytes = 4096;

  /// Max size of a single read, in bytes; a longer row is still read at once.
  std::uint64_t max_read_bytes = 256 << 10;

  /// Size, in bytes, of the staging memory into which reads go before the rows are checked and
  /// copied out. None is allocated with IoMaker::kMapped, which reads nothing. Must hold the
  /// longest read and 8 KiB.
  std::size_t staging_bytes = std::size_t{16} << 20;
};

/// Counts since the reader was opened.
struct RowReaderStats {
  std::uint64_t rows = 0;        ///< rows delivered
  std::uint64_t reads = 0;       ///< reads issued
  std::uint64_t read_bytes = 0;  ///< bytes of those reads
  double mean_depth = 0;         ///< requests in flight, averaged over reads
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;  ///< whether any file was read with O_DIRECT
};

/// Reads random rows of an array in layout kRow. It sorts and coalesces them, reads them in deep
/// batches, and verifies each row by its checksum in the sidecar (RowSums; 4 bytes of memory per
/// row).
/// Threads: one at a time; each reading thread needs its own reader.
/// Ownership: `array` and `sidecar` are used only during Open; their FileSystem must outlive the
/// reader.
class RowReader {
 public:
  /// Opens a reader, and loads and verifies the whole sidecar. Errors: kInvalidArgument, not layout
  /// kRow or options out of range; kCorruption, a bad sidecar; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<RowReader>> Open(const ChunkArray& array, const ChunkArray& sidecar,
                                                 const RowReaderOptions& options);

  /// Opens a reader that shares files and checksums with others. Checksums may be loaded on demand
  /// (RowSums::Open); Read then returns the errors of loading. `files` determine whether reads are
  /// direct; options.direct is ignored.
  static Result<std::unique_ptr<RowReader>> Open(const ChunkArray& array,
                                                 std::shared_ptr<const RowSums> sums,
                                                 std::shared_ptr<ArrayFiles> files,
                                                 const RowReaderOptions& options);
  ~RowReader();

  /// Opens another reader of the same rows with the same options, for another thread. It shares
  /// checksums and open files.
  Result<std::unique_ptr<RowReader>> Another() const;

  /// Reads all targets, and sorts `targets` by row. Duplicates are allowed and read once.
  /// Errors: kInvalidArgument, a row out of range; kCorruption, naming array and row; kIoError.
  /// After an error the targets' memory is unspecified.
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
