#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// An open descriptor, closed when it is destroyed.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }

  /// Gives it up: somebody else closes it.
  int Release() { return std::exchange(fd_, -1); }

  /// Closes now. Returns 0 or the errno of close.
  int Close();

 private:
  int fd_ = -1;
};

/// open(2) without EINTR, always O_CLOEXEC; below an enclosed root (FileSystem::Enclose) through no
/// link.
Result<Descriptor> OpenDescriptor(const Path& path, int flags, std::string_view operation);

/// A Status that names operation, path and the error number.
Status SystemError(int error_number, std::string_view operation, const Path& path);

/// Opens a regular file; anything else (a link, a pipe, a folder) is refused without blocking.
Result<std::unique_ptr<ReadableFile>> OpenPosixRead(const Path& path, bool direct);

/// Takes over a descriptor open for writing, `size_bytes` bytes into the file.
std::unique_ptr<WritableFile> MakePosixWritable(Descriptor descriptor, const Path& path,
                                                std::uint64_t size_bytes);

/// write(2) until all is written. `offset_bytes` only names the place in messages.
Status WriteFully(int fd, std::span<const std::byte> bytes, const Path& path,
                  std::uint64_t offset_bytes);

}  // namespace rhizome::inline internal
