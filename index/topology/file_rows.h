#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/storage/array_files.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/process.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/row_sums.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// The least that is read and decoded at a time of an array without row checksums: a chunk, or an
/// inner chunk of a shard.
inline std::uint64_t RowsPerRead(const ArrayEntry& entry) {
  return entry.sharded() ? entry.inner_rows : entry.chunk_rows;
}

/// Has the array, in a sidecar, a checksum for each row?
bool HasRowChecksums(const ArrayEntry& entry);

/// Any rows of an array of one generation, as its files have them, many in one call: with row
/// checksums by RowReader, coalesced and in deep batches past the page cache; else what is the
/// least to decode is decoded once a call.
/// Memory: what RowSums loaded; and for each of the most threads that were in Read at once, up to
/// kMostIdle, a queue and about 2 MiB, or 4 reads of the longest row.
/// Threads: any number at once. Ownership: the array's file system must outlive it.
class FileRows {
 public:
  /// `sums`: null where there are no row checksums.
  FileRows(std::shared_ptr<const ChunkArray> array, std::shared_ptr<const RowSums> sums)
      : array_(std::move(array)),
        sums_(std::move(sums)),
        files_(std::make_shared<ArrayFiles>(*array_, /*direct=*/true)) {}

  /// Row checksums are loaded as they are needed. Errors: those of Store::OpenArray; kCorruption,
  /// the sidecar is not the array's.
  static Result<std::shared_ptr<const FileRows>> Open(const Store& store, std::string_view array);

  const ArrayEntry& entry() const { return array_->entry(); }
  bool by_row() const { return sums_ != nullptr; }

  /// Reads all targets, which it sorts by row; duplicates are allowed. Errors: kInvalidArgument, a
  /// row out of range, or in a forked child; kCorruption; kIoError. Then the targets' memory is
  /// unspecified.
  Status Read(std::span<RowTarget> targets) const;

 private:
  static constexpr std::size_t kMostIdle = 16;
  Result<std::unique_ptr<RowReader>> TakeReader() const RHIZOME_EXCLUDES(mutex_);
  Status ReadByPart(std::span<RowTarget> targets) const;

  const std::shared_ptr<const ChunkArray> array_;
  const std::shared_ptr<const RowSums> sums_;
  const std::shared_ptr<ArrayFiles> files_;
  const OwnerProcess owner_;  // a lock may be held for ever in a fork
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<RowReader>> idle_ RHIZOME_GUARDED_BY(mutex_);
};

/// The arrays of one generation that were read of, for Graph::ReadRows: opened when they are first
/// asked for, and kept until the store has them no more. Threads: any.
class OpenArrays {
 public:
  /// `store`: a snapshot at the generation. Errors: those of FileRows::Open.
  Result<std::shared_ptr<const FileRows>> Of(const Store& store, std::string_view array)
      RHIZOME_EXCLUDES(mutex_);

 private:
  const OwnerProcess owner_;
  Mutex mutex_;
  std::vector<std::shared_ptr<const FileRows>> open_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome::inline internal
