#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome::testing {

/// An open file descriptor, closed on destruction.
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

/// Creates an unnamed file in memory. Errors: kIoError.
Result<OwnedFile> MemoryFile(std::uint64_t bytes);

/// Writes all of `data`. Errors: kIoError.
Status WriteAt(int fd, std::uint64_t offset, const void* data, std::uint64_t bytes);

/// Copies the contents of `from` to a new file in memory; holes remain holes. Errors: kIoError.
Result<OwnedFile> CopyToMemory(int from);

/// A file as a block device, mounted. Needs root. Destroying it unmounts and frees the device; the
/// kernel also frees it when this process ends and nothing is mounted from it.
class LoopMount {
 public:
  /// Mounts an image. `kind` is ext4 or xfs; `folder` must exist and be empty. Mounting replays the
  /// journal. Errors: kIoError, naming the call that failed.
  static Result<LoopMount> Mount(int image, const std::string& kind, const Path& folder);
  LoopMount(LoopMount&& other) noexcept;
  LoopMount& operator=(LoopMount&&) = delete;
  ~LoopMount();

  /// Unmounts, which writes all remaining changes to the image.
  Status Unmount();

 private:
  LoopMount(OwnedFile device, Path folder);

  OwnedFile device_;
  Path folder_;
  bool mounted_ = true;
};

/// Unmounts folders when this process has ended, even if it was killed before destructors ran;
/// another process waits for that. Construct it before opening anything that must not outlive the
/// process.
class UnmountAtDeath {
 public:
  explicit UnmountAtDeath(std::vector<Path> folders);
  UnmountAtDeath(UnmountAtDeath&&) = delete;
  ~UnmountAtDeath() = default;

 private:
  OwnedFile alive_;  // the waiting process sees when it is closed
};

}  // namespace rhizome::testing
