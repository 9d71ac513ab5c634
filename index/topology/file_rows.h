#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/array/array_files.h"
#include "storage/array/row_reader.h"
#include "storage/array/row_sums.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// Returns the number of rows that are read and decoded together in an array without row checksums:
/// the rows of a chunk, or of an inner chunk of a shard.
inline std::uint64_t RowsPerRead(const ArrayEntry& entry) {
  return entry.sharded() ? entry.inner_rows : entry.chunk_rows;
}

/// Returns whether the array has a sidecar with a checksum for each row.
bool HasRowChecksums(const ArrayEntry& entry);

/// Reads any rows of an array from the files of one generation, many in one call. With row
/// checksums it uses RowReader: direct reads, coalesced, in deep batches. Without them it decodes
/// each chunk (or inner chunk) at most once a call.
/// Memory: the loaded row checksums (RowSums); and, for each of up to kMaxIdle concurrent readers,
/// a queue and about 2 MiB, or 4 reads of the longest row if that is more.
/// Threads: any number at once.
/// Ownership: the array's file system must outlive it.
class FileRows {
 public:
  /// `sums` is null if the array has no row checksums.
  FileRows(std::shared_ptr<const ChunkArray> array, std::shared_ptr<const RowSums> sums)
      : array_(std::move(array)),
        sums_(std::move(sums)),
        files_(std::make_shared<ArrayFiles>(*array_, /*direct=*/true)) {}

  /// Opens an array. Row checksums are loaded when they are needed.
  /// Errors: any error of Store::OpenArray; kCorruption, the sidecar does not fit the array.
  static Result<std::shared_ptr<const FileRows>> Open(const Store& store, std::string_view array);

  const ArrayEntry& entry() const { return array_->entry(); }
  bool by_row() const { return sums_ != nullptr; }

  /// Reads all targets. It sorts them by row; duplicates are allowed. After an error the content of
  /// the targets' memory is unspecified.
  /// Errors: kInvalidArgument, a row out of range, or a call in a forked child; kCorruption;
  /// kIoError.
  Status Read(std::span<RowTarget> targets) const;

 private:
  static constexpr std::size_t kMaxIdle = 16;  // readers kept for later calls
  Result<std::unique_ptr<RowReader>> TakeReader() const RHIZOME_EXCLUDES(mutex_);
  Status ReadByPart(std::span<RowTarget> targets) const;

  const std::shared_ptr<const ChunkArray> array_;
  const std::shared_ptr<const RowSums> sums_;
  const std::shared_ptr<ArrayFiles> files_;
  const OwnerProcess owner_;  // a forked child may inherit a locked mutex, so its calls fail
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<RowReader>> idle_ RHIZOME_GUARDED_BY(mutex_);
};

/// Keeps the arrays of one generation open for Graph::ReadRows. Each array is opened at its first
/// use.
/// Threads: any.
class OpenArrays {
 public:
  /// Returns the open array. `store` must be a snapshot of the generation.
  /// Errors: any error of FileRows::Open.
  Result<std::shared_ptr<const FileRows>> Of(const Store& store, std::string_view array)
      RHIZOME_EXCLUDES(mutex_);

  /// Closes the arrays that `store` no longer has, once the reads from them have ended. The file
  /// system frees the space of a removed file only after the last handle is closed.
  void CloseDropped(const Store& store) RHIZOME_EXCLUDES(mutex_);

 private:
  void EraseDropped(const Store& store) RHIZOME_REQUIRES(mutex_);

  const OwnerProcess owner_;
  Mutex mutex_;
  std::vector<std::shared_ptr<const FileRows>> open_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace internal
}  // namespace rhizome
