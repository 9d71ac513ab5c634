#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "reliability/live/loop_mount.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace rhizome::testing {

/// An operation of a file system on its disk.
struct DiskOperation {
  /// A flush: everything written before it is durable when it ends. It has neither offset nor
  /// bytes.
  bool is_flush = false;
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

/// A disk that keeps a log: an image file in a FUSE file system, which a thread of this process
/// serves over /dev/fuse. A loop device on the file (LoopMount) carries a file system. The kernel
/// passes on each of its writes immediately, and each flush as an fsync, so the log has both in an
/// order in which a disk may have done them. Needs root. Thread-safe.
class LoggedDisk {
 public:
  /// Creates a disk with the contents of `image`. Its only file appears in `folder`, which must
  /// exist and be empty. Errors: kIoError, naming the call that failed.
  static Result<std::unique_ptr<LoggedDisk>> Make(int image, const Path& folder);
  LoggedDisk(LoggedDisk&&) = delete;
  /// Requests that are still waiting for the disk fail.
  ~LoggedDisk();

  /// Returns the file for LoopMount::Mount.
  int image() const { return shown_.fd(); }

  /// Returns the number of operations in the log.
  std::size_t position() const;
  std::size_t flushes() const;

  /// Returns the log. Later operations are not recorded.
  std::vector<DiskOperation> TakeLog();

 private:
  LoggedDisk(OwnedFile content, std::uint64_t bytes, Path folder);

  struct Request;
  void Serve();
  bool ServeOne(std::vector<std::byte>& buffer);
  void Answer(const Request& request);
  void Reply(std::uint64_t unique, int error, const void* body, std::size_t bytes);
  void ReplyInit(const Request& request);
  void ReplyRead(const Request& request);
  void TakeWrite(const Request& request);
  void Append(DiskOperation operation);

  OwnedFile content_;
  const std::uint64_t bytes_;
  const Path folder_;
  bool mounted_ = false;
  OwnedFile channel_;
  OwnedFile shown_;
  std::atomic<bool> ends_ = false;
  std::thread server_;

  mutable Mutex mutex_;
  bool keeps_ RHIZOME_GUARDED_BY(mutex_) = true;
  std::size_t flushes_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::vector<DiskOperation> log_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace rhizome::testing
