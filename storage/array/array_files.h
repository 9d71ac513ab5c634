#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// The chunk files of an array. Each file is opened on first use and shared by all readers, so that
/// many readers need no more descriptors than one. Beyond `max_open` files, unused files are
/// closed.
/// Threads: any. Ownership: the array's file system must outlive it.
class ArrayFiles {
 public:
  /// `direct` opens files with O_DIRECT if the file system supports it. `max_open` = 0 means an
  /// eighth of the process's limit on open files, at least 16 and at most 2048.
  ArrayFiles(const ChunkArray& array, bool direct, std::size_t max_open = 0);

  /// Returns the file of a chunk. Returns nullptr if too many files are in use and `must` is false;
  /// a caller that holds files must then finish its reads and release some. Errors: kCorruption,
  /// the file is missing or its length differs from the manifest; kInvalidArgument, no such chunk,
  /// it has no file, or this is a forked child; errors of FileSystem::OpenRead.
  Result<std::shared_ptr<ReadableFile>> Open(std::uint64_t chunk, bool must)
      RHIZOME_EXCLUDES(mutex_);

 private:
  Result<std::shared_ptr<ReadableFile>> OpenChunk(std::uint64_t slot) const;
  void CloseUnused() RHIZOME_REQUIRES(mutex_);

  FileSystem& fs_;
  const Path root_;
  const bool direct_;
  const std::size_t max_open_;
  std::uint64_t chunk_count_ = 0;
  ChunkSlots slots_;
  std::vector<FileEntry> chunks_;  // by slot, as files_
  const OwnerProcess owner_;       // in a fork, mutex_ may remain locked forever
  Mutex mutex_;
  std::vector<std::shared_ptr<ReadableFile>> files_ RHIZOME_GUARDED_BY(mutex_);  // null: not open
  std::size_t open_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

}  // namespace internal
}  // namespace rhizome
