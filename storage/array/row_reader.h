#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/chunk_array.h"
#include "rhizome/export.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"

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

  /// Reads all targets, and sorts `targets` by row (those in chunks without a file, which get the
  /// fill value of a bound array, come last). Duplicates are allowed and read once.
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
