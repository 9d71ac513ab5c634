#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

/// The scratch folder of one job whose data exceeds its memory. Its files are written once, front
/// to back, in large blocks with a checksum each, and are read back front to back.
///
/// A background thread computes checksums and writes blocks; at most queue_bytes of blocks wait for
/// it. Files are synced every 64 MiB, so that the page cache holds few dirty pages, and a memory
/// limit that counts the cache is not exceeded. No file survives the job: Clear or the destructor
/// removes the folder, and after a kill the next process that opens the store does.
///
/// Threads: functions may be called from many threads; each SpillWriter from one at a time.
class SpillSpace {
 public:
  /// Creates the folder `scratch`/`job` and locks it.
  /// Errors: kBusy; kOutOfSpace; kIoError.
  static Result<std::unique_ptr<SpillSpace>> Create(FileSystem& fs, const Path& scratch,
                                                    std::string_view job,
                                                    std::uint64_t queue_bytes);
  ~SpillSpace();
  SpillSpace(const SpillSpace&) = delete;
  SpillSpace& operator=(const SpillSpace&) = delete;

  /// Returns the bytes that all writers have written to disk so far.
  std::uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

  /// Stops the thread and removes the folder, and also `scratch` if it is empty then.
  Status Clear();

  FileSystem& fs() const { return fs_; }

 private:
  friend class SpillWriter;
  friend class SpillFile;
  struct Output {
    std::unique_ptr<WritableFile> file;
    std::uint64_t unsynced_bytes = 0;
    std::uint32_t blocks = 0;
  };
  struct Job {
    // The output is shared, because a writer may be destroyed while its blocks wait.
    std::shared_ptr<Output> output;
    std::vector<std::byte> block;
  };

  SpillSpace(FileSystem& fs, Path folder, std::uint64_t queue_bytes)
      : fs_(fs), folder_(std::move(folder)), queue_limit_(queue_bytes) {}
  Path NewPath();
  Status Enqueue(std::shared_ptr<Output> output, std::vector<std::byte> block);
  Status Drain();
  void Stop();
  Status Work() RHIZOME_EXCLUDES(mutex_);
  void GiveUp(Status status) noexcept RHIZOME_EXCLUDES(mutex_);
  Status WriteBlock(Output& output, std::span<const std::byte> block);

  FileSystem& fs_;
  const Path folder_;
  const std::uint64_t queue_limit_;
  std::unique_ptr<FileLock> lock_;
  std::atomic<std::uint64_t> bytes_written_{0};
  std::atomic<std::uint64_t> next_file_{0};
  Thread thread_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> queue_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;  // includes the block being written
  bool stop_ RHIZOME_GUARDED_BY(mutex_) = false;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);  // the first failure; every later call returns it
};

/// A finished file of a SpillSpace. The destructor removes the file. The SpillSpace must outlive
/// it.
class SpillFile {
 public:
  SpillFile() = default;
  SpillFile(SpillFile&& other) noexcept { *this = std::move(other); }
  SpillFile& operator=(SpillFile&& other) noexcept;
  ~SpillFile() { Remove(); }

  std::uint64_t size_bytes() const { return size_bytes_; }
  void Remove();

 private:
  friend class SpillWriter;
  friend class SpillReader;
  SpillSpace* space_ = nullptr;
  Path path_;
  std::uint64_t size_bytes_ = 0;
};

/// Writes one file of blocks. Threads: one at a time.
class SpillWriter {
 public:
  static Result<SpillWriter> Create(SpillSpace& space, std::size_t block_bytes);
  SpillWriter(SpillWriter&&) noexcept = default;
  SpillWriter& operator=(SpillWriter&&) noexcept = default;

  /// Adds a record, which is stored within one block; a record longer than a block gets a separate
  /// block.
  /// Errors: any error of writing, possibly of an earlier block or another file; kOutOfSpace.
  Status Append(std::span<const std::byte> record);

  /// Ends the block; the next record begins another.
  Status EndBlock();

  /// Waits until everything is written.
  Result<SpillFile> Finish();

 private:
  SpillWriter(SpillSpace& space, Path path, std::size_t block_bytes)
      : space_(&space), path_(std::move(path)), block_bytes_(block_bytes) {}
  SpillSpace* space_;
  Path path_;
  std::size_t block_bytes_;
  std::shared_ptr<SpillSpace::Output> output_;
  std::vector<std::byte> block_;
};

/// Reads a file back, block by block. With `ahead`, it prefetches the next block in the background.
/// Threads: one at a time.
/// Ownership: `file` must outlive it.
class SpillReader {
 public:
  static Result<SpillReader> Open(const SpillFile& file, bool ahead);
  SpillReader(SpillReader&&) noexcept = default;
  SpillReader& operator=(SpillReader&&) = delete;  // a read may be in flight

  /// Returns the next block, valid until the next call; empty at the end.
  /// Errors: kIoError; kCorruption, the block differs from the written one.
  Result<std::span<const std::byte>> Next();

 private:
  struct Source {
    std::unique_ptr<ReadableFile> file;
    std::uint64_t offset_bytes = 0;
    std::uint32_t blocks = 0;
  };
  SpillReader() = default;
  static Result<std::vector<std::byte>> ReadBlock(Source& source);

  std::unique_ptr<Source> source_;
  bool ahead_ = false;
  std::vector<std::byte> block_;
  std::future<Result<std::vector<std::byte>>> next_;
};

/// Returns the size of a block for `streams` files that are open at once: an equal share of
/// `budget_bytes`, within [4 KiB, 1 MiB].
std::size_t SpillBlockBytes(std::uint64_t budget_bytes, std::uint64_t streams);

}  // namespace internal
}  // namespace rhizome
