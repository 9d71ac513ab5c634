#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"
#include "storage/array/row_reader.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A row to write: row_bytes bytes at `bytes`.
struct RowWrite {
  std::int64_t row = 0;
  const std::byte* bytes = nullptr;
};

/// Shape of a table, and how it is accessed.
struct RowTableOptions {
  std::uint64_t rows = 0;
  std::size_t row_bytes = 0;  ///< value and state of a row

  bool direct = true;  ///< uses O_DIRECT if the file system supports it
  IoQueueOptions io = {};

  /// Blocks of one read that are at most this far apart are read together. As for RowReader.
  std::uint64_t gap_bytes = 16 << 10;
  std::size_t max_transfer_bytes = std::size_t{1} << 20;  ///< max size of one read or write
  std::size_t staging_bytes = std::size_t{8} << 20;       ///< memory for transfers
};

/// Counts since a table was opened. Reads include those that complete partly written blocks.
struct RowTableStats {
  std::uint64_t rows_read = 0;
  std::uint64_t rows_written = 0;
  std::uint64_t reads = 0;  ///< requests
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;  ///< requests
  std::uint64_t write_bytes = 0;
  std::uint64_t completed_blocks =
      0;  ///< blocks that were read because only some rows were written
};

/// A table of rows of equal size on disk that is read and written row by row, and that can return
/// to its last checkpoint. Format: storage/FORMAT.md, "Table of rows".
///
/// Rows are in blocks of 4 KiB, or of one row if a row is larger. Each block has two slots on disk.
/// A block that is written after a checkpoint is written to the slot that the checkpoint does not
/// use, so that the checkpoint remains intact. Checkpoint syncs the table, then writes a file that
/// names the slot of each block, its checksum, and the progress of the caller. There is no log:
/// after a crash the table is as at its last checkpoint.
///
/// Disk: twice the table, reserved when it is created (DiskBytes). Memory: 4 bytes and 2 bits per
/// block, and the staging memory.
///
/// After an error of Write or Checkpoint every later call fails; the job opens the table again,
/// which returns to a checkpoint.
/// Threads: one at a time. Ownership: the FileSystem must outlive the table.
class RowTable {
 public:
  /// Min size of a block.
  static constexpr std::size_t kBlockBytes = 4096;

  /// Returns the bytes on disk of a table, with its checkpoints but without the callers' progress.
  static std::uint64_t DiskBytes(std::uint64_t rows, std::size_t row_bytes);

  /// Sets the first content of row `row`, which is zeros before. Called from several threads.
  using Fill = std::function<void(std::uint64_t row, std::span<std::byte> bytes)>;

  /// Creates a table in `folder`, the scratch folder of a job. `name` begins the names of its
  /// files; files of an earlier table of this name are removed. The table has no checkpoint yet.
  /// Errors: kInvalidArgument, no rows, or rows without bytes; kOutOfSpace, the folder's disk has
  /// less than DiskBytes free: nothing was written; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<RowTable>> Create(FileSystem& fs, const Path& folder,
                                                  const std::string& name,
                                                  const RowTableOptions& options, const Fill& fill);

  /// Opens a table as at its last checkpoint. Errors: kNotFound, it has no checkpoint;
  /// kInvalidArgument, it has another shape; kCorruption; kUnsupported, a newer format; kIoError;
  /// kOutOfMemory.
  static Result<std::unique_ptr<RowTable>> Open(FileSystem& fs, const Path& folder,
                                                const std::string& name,
                                                const RowTableOptions& options);
  ~RowTable();

  /// Reads all targets and sorts them by row. Duplicates are allowed. Errors: kInvalidArgument, a
  /// row out of range; kCorruption, naming the row and the place; kIoError.
  Status Read(std::span<RowTarget> targets);

  /// Writes rows, which must be distinct, and sorts `sources` by row. Where only some rows of a
  /// block are written, the others are read first. Errors: as Read; kOutOfSpace.
  Status Write(std::span<RowWrite> sources);

  /// Makes the current content, and `progress`, what Open returns after a crash. Both survive
  /// together. Errors: kIoError, kOutOfSpace.
  Status Checkpoint(std::span<const std::byte> progress);

  /// Returns the progress of the last checkpoint; empty before the first one.
  std::span<const std::byte> progress() const;

  /// Removes the files of a table. Errors: kIoError.
  static Status Remove(FileSystem& fs, const Path& folder, const std::string& name);

  std::uint64_t rows() const;
  std::size_t row_bytes() const;

  /// Returns the number of the block of a row, and the rows [first, end) of a block.
  std::uint64_t BlockOf(std::int64_t row) const;
  std::pair<std::int64_t, std::int64_t> RowsOfBlock(std::uint64_t block) const;
  RowTableStats stats() const;

 private:
  class Impl;
  explicit RowTable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal
}  // namespace rhizome
