#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "rhizome/file_system.h"
#include "storage/io/updatable_file.h"

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

/// Opens a file to rewrite it in place: FileSystem::OpenUpdatable.
Result<std::unique_ptr<UpdatableFile>> OpenPosixUpdatable(const Path& path,
                                                          std::uint64_t size_bytes, bool direct);

/// Takes over a descriptor that is open for writing at the end of a file of `size_bytes` bytes.
std::unique_ptr<WritableFile> MakePosixWritable(Descriptor descriptor, const Path& path,
                                                std::uint64_t size_bytes);

/// Linux transfers at most 2 GiB - 4 KiB per read or write call; this is below that.
inline constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 30;

/// ReadableFile::ReadAt of a descriptor.
Result<std::size_t> ReadOnce(int fd, std::uint64_t offset_bytes, std::span<std::byte> out,
                             const Path& path);

/// The reads of a ReadableFile or UpdatableFile.
template <typename File>
class PosixReads : public File {
 public:
  PosixReads(Descriptor descriptor, Path path, std::uint64_t size_bytes,
             std::uint32_t alignment_bytes)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        size_bytes_(size_bytes),
        alignment_bytes_(alignment_bytes) {}

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    return ReadOnce(descriptor_.get(), offset_bytes, out, path_);
  }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  const Path& path() const override { return path_; }
  int descriptor() const override { return descriptor_.get(); }
  std::uint32_t alignment_bytes() const override { return alignment_bytes_; }

 private:
  const Descriptor descriptor_;
  const Path path_;
  const std::uint64_t size_bytes_;
  const std::uint32_t alignment_bytes_;
};

/// Returns the block size of direct reads and writes: offsets, lengths and memory must be multiples
/// of it. Returns 0 if they are not possible after all.
std::uint32_t DirectAlignment(int fd);

/// Calls write(2) until everything is written. `offset_bytes` is used only in messages.
Status WriteFully(int fd, std::span<const std::byte> bytes, const Path& path,
                  std::uint64_t offset_bytes);

}  // namespace internal
}  // namespace rhizome
