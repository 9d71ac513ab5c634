#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/process.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The chunk files of an array, each opened when it is first asked for and shared by all readers,
/// so that many of them need no more descriptors than one: a part of the process's limit, beyond
/// which files that nobody uses are closed.
/// Threads: any. Ownership: the array's file system must outlive it.
class ArrayFiles {
 public:
  /// `direct`: O_DIRECT, where the file system grants it. `most_open`: 0: an eighth of the limit.
  ArrayFiles(const ChunkArray& array, bool direct, std::size_t most_open = 0);

  /// The file of a chunk. Null where too many are in use and `must` is false: whoever has some
  /// waits until they are done. Errors: kCorruption, missing, or of another length than in the
  /// manifest; kInvalidArgument, no such chunk, or in a forked child; those of
  /// FileSystem::OpenRead.
  Result<std::shared_ptr<ReadableFile>> Open(std::uint64_t chunk, bool must)
      RHIZOME_EXCLUDES(mutex_);

 private:
  Result<std::shared_ptr<ReadableFile>> OpenChunk(std::uint64_t chunk) const;
  void CloseUnused() RHIZOME_REQUIRES(mutex_);

  FileSystem& fs_;
  const Path root_;
  const bool direct_;
  const std::size_t most_open_;
  std::vector<FileEntry> chunks_;
  const OwnerProcess owner_;  // a lock may be held for ever in a fork
  Mutex mutex_;
  std::vector<std::shared_ptr<ReadableFile>> files_ RHIZOME_GUARDED_BY(mutex_);  // null: not open
  std::size_t open_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

}  // namespace rhizome::inline internal
