#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/status.h"

namespace rhizome::testing {

/// An open file, closed at the end.
class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int fd) : fd_(fd) {}
  OwnedFile(OwnedFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile() { Close(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

/// A file in memory, without a name. Errors: kIoError.
Result<OwnedFile> MemoryFile(std::uint64_t bytes);

/// Writes all of `data`. Errors: kIoError.
Status WriteAt(int fd, std::uint64_t offset, const void* data, std::uint64_t bytes);

/// Copies what is in `from` (holes stay holes) to a fresh file in memory. Errors: kIoError.
Result<OwnedFile> CopyToMemory(int from);

/// A file as a block device, mounted. Needs root. Destroying it unmounts and frees the device; the
/// kernel frees it too when this process ends and nothing is mounted from it.
class LoopMount {
 public:
  /// `kind`: ext4 or xfs; `folder` is there and empty. Mounting replays the journal. Errors:
  /// kIoError, with the call that was refused.
  static Result<LoopMount> Mount(int image, const std::string& kind, const Path& folder);
  LoopMount(LoopMount&& other) noexcept;
  LoopMount& operator=(LoopMount&&) = delete;
  ~LoopMount();

  /// Unmounts, which writes what is left to the image.
  Status Unmount();

 private:
  LoopMount(OwnedFile device, Path folder);

  OwnedFile device_;
  Path folder_;
  bool mounted_ = true;
};

/// Unmounts folders when this process has gone, even one that was killed before destructors ran: a
/// process beside it waits for that. Make it before anything is opened that must not outlive the
/// process.
class UnmountAtDeath {
 public:
  explicit UnmountAtDeath(std::vector<Path> folders);
  UnmountAtDeath(UnmountAtDeath&&) = delete;
  ~UnmountAtDeath() = default;

 private:
  OwnedFile alive_;  // the other end sees that it is closed
};

}  // namespace rhizome::testing
