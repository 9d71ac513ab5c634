#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// Owns an open descriptor and closes it in its destructor.
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

  /// Releases ownership: the caller must close the descriptor.
  int Release() { return std::exchange(fd_, -1); }

  /// Closes the descriptor now. Returns 0 or the errno of close.
  int Close();

 private:
  int fd_ = -1;
};

/// Calls open(2) with O_CLOEXEC; retries EINTR. Follows no link below an enclosed root
/// (FileSystem::Enclose). `operation` is a word for error messages.
Result<Descriptor> OpenDescriptor(const Path& path, int flags, std::string_view operation);

/// Creates a Status that names operation, path and the error of the system call.
Status SystemError(int error_number, std::string_view operation, const Path& path);

/// Opens a regular file. Refuses anything else (a link, a pipe, a folder) without blocking.
Result<std::unique_ptr<ReadableFile>> OpenPosixRead(const Path& path, bool direct);

/// Takes over a descriptor that is open for writing at the end of a file of `size_bytes` bytes.
std::unique_ptr<WritableFile> MakePosixWritable(Descriptor descriptor, const Path& path,
                                                std::uint64_t size_bytes);

/// Calls write(2) until everything is written. `offset_bytes` is used only in messages.
Status WriteFully(int fd, std::span<const std::byte> bytes, const Path& path,
                  std::uint64_t offset_bytes);

}  // namespace internal
}  // namespace rhizome
