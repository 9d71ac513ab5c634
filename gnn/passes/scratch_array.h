#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gnn/passes/file_remover.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/base/stopwatch.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {

/// The bytes that passes moved between memory and scratch arrays, and the seconds in which at least
/// one chunk was being read or written.
struct ScratchMoved {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  double busy_seconds = 0;
};

/// A matrix of floats in chunks: chunk c holds rows [c * chunk_rows, (c + 1) * chunk_rows). The
/// last chunk may have fewer rows.
struct ScratchShape {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::uint64_t chunk_rows = 1;

  /// Files of chunks and their buffers are padded to a multiple of this size for direct reads and
  /// writes.
  static constexpr std::uint64_t kUnitBytes = AlignedBuffer::kAlignmentBytes;

  std::uint64_t chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }
  std::uint64_t RowsIn(std::uint64_t chunk) const;
  std::uint64_t BytesIn(std::uint64_t chunk) const;
  std::uint64_t LargestBytes() const { return rows == 0 ? 0 : BytesIn(0); }
  std::uint64_t AllBytes() const;
};

/// The file of a chunk.
struct ScratchFile {
  std::uint32_t chunk = 0;
  Hash128 hash{};  ///< of its bytes
};

/// A folder of scratch arrays, with a pool of buffers for chunks, and counters of the bytes read
/// and written. Threads: any. Ownership: `fs` must outlive it.
class ScratchSpace {
 public:
  /// Does no I/O: the folder need not exist for a job that is only planned.
  ScratchSpace(FileSystem& fs, Path folder);

  FileSystem& fs() const { return fs_; }
  const Path& folder() const { return folder_; }

  /// Returns an uninitialised buffer of `bytes`, aligned for direct reads and writes. If it has to
  /// be allocated, unused buffers of other sizes are freed first, so that all buffers together
  /// exceed the maximum that was in use at once by no more than one buffer. Errors: kOutOfMemory.
  Result<std::shared_ptr<float[]>> Take(std::uint64_t bytes);

  /// Limits the bytes of all buffers, used and unused: unused buffers are kept only within this
  /// limit. A pass with larger sums leaves less memory for chunks and sets a lower limit. Initially
  /// there is no limit.
  void SetRoom(std::uint64_t bytes);

  /// Returns the bytes of all buffers, used and unused.
  std::uint64_t held_bytes() const;

  ScratchMoved moved() const;

  /// Removes a file in the background, or when Protect no longer names it. A file that cannot be
  /// removed is removed with the job's folder.
  void RemoveFile(const Path& path);

  /// Wait until all removals in the background are done, or only the removal of one file, which may
  /// be created again afterwards.
  void WaitForRemovals() { remover_.Wait(); }
  void WaitForRemovalOf(const Path& path) { remover_.WaitFor(path); }

  /// Protects these files from removal. The files of the previous call are no longer protected.
  void Protect(std::set<Path> paths);

  /// Times a read or write, and counts its bytes.
  class Moving {
   public:
    explicit Moving(ScratchSpace& space);
    ~Moving();
    Moving(const Moving&) = delete;
    Moving& operator=(const Moving&) = delete;
    void CountRead(std::uint64_t bytes) { space_.read_ += bytes; }
    void CountWritten(std::uint64_t bytes) { space_.written_ += bytes; }

   private:
    ScratchSpace& space_;
  };

 private:
  struct Buffers;
  struct Held;

  FileSystem& fs_;
  const Path folder_;
  std::shared_ptr<Buffers> buffers_;  // shared with the memory that is in use
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint64_t> written_ = 0;

  mutable Mutex mutex_;
  std::uint64_t moving_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::set<Path> protected_ RHIZOME_GUARDED_BY(mutex_);
  std::set<Path> postponed_ RHIZOME_GUARDED_BY(mutex_);  // to be removed later
  double busy_seconds_ RHIZOME_GUARDED_BY(mutex_) = 0;   // without the running watch
  Stopwatch watch_ RHIZOME_GUARDED_BY(mutex_);           // runs while moving_ > 0

  FileRemover remover_;
};

/// The files of an array: a raw file for each chunk that is not only in memory. Files are written
/// and read past the page cache and never synced. Their checksums are kept in memory.
/// Threads: functions may be called from several threads at once for different chunks. A chunk must
/// be stored before it is loaded.
/// Ownership: `space` must outlive it.
class ScratchArray {
 public:
  ScratchArray(ScratchSpace& space, ScratchShape shape, std::uint32_t id);
  ~ScratchArray() { RemoveFiles(); }

  const ScratchShape& shape() const { return shape_; }
  std::uint32_t id() const { return id_; }

  /// Returns a buffer for a chunk. Errors: kOutOfMemory.
  Result<std::shared_ptr<float[]>> Take(std::uint64_t chunk) const {
    return space_.Take(shape_.BytesIn(chunk));
  }

  bool HasFile(std::uint64_t chunk) const { return files_[chunk].there; }

  /// Writes a chunk [rows of the chunk, dim] from a buffer of Take. Zeroes the padding after the
  /// rows. `counts`: whether the bytes are added to ScratchMoved. Errors: kIoError; kOutOfSpace.
  Status Store(std::uint64_t chunk, float* values, bool counts = true);

  /// Reads a chunk. Errors: kCorruption, naming the file; kIoError; kOutOfMemory.
  Result<std::shared_ptr<const float[]>> Load(std::uint64_t chunk);

  /// Begins a step, whose number is part of the file names. Removes the files of the previous step.
  /// `files`: files of this step that an earlier process left.
  void Begin(std::uint64_t step, std::span<const ScratchFile> files);

  /// Returns the files that exist.
  std::vector<ScratchFile> Files() const;
  Path FileOf(std::uint64_t step, std::uint64_t chunk) const;

  /// Removes the files that exist, in the background.
  void RemoveFiles();

  ScratchSpace& space() const { return space_; }

 private:
  struct File {
    bool there = false;
    Hash128 hash{};
  };

  ScratchSpace& space_;
  const ScratchShape shape_;
  const std::uint32_t id_;
  std::uint64_t step_ = 0;
  std::vector<File> files_;  // [chunks]
};

}  // namespace internal
}  // namespace rhizome
