#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/io/posix_file.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Invariant: once `failed_` is set, nothing more is written, because the kernel may have dropped
/// pages of a failed write-back.
class PosixUpdatableFile final : public PosixReads<UpdatableFile> {
 public:
  using PosixReads::PosixReads;

  Status WriteAt(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    if (!failed_.ok()) return failed_;
    while (!bytes.empty()) {
      const std::size_t want = std::min(bytes.size(), kMaxTransferBytes);
      const ssize_t written =
          pwrite(descriptor(), bytes.data(), want, static_cast<off_t>(offset_bytes));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        return Poison(SystemError(
            written < 0 ? errno : EIO,
            fmt::format("write of {} bytes at offset {}", bytes.size(), offset_bytes), path()));
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset_bytes += static_cast<std::uint64_t>(written);
    }
    return Status::Ok();
  }

  Status Sync() override {
    if (!failed_.ok()) return failed_;
    if (fdatasync(descriptor()) == 0) return Status::Ok();
    return Poison(SystemError(errno, "sync", path()));
  }

 private:
  Status Poison(Status status) {
    failed_ = Status(status.code(), status.message() + " (the file accepts no more writes)");
    return status;
  }

  Status failed_;
};

/// Makes the file `size_bytes` long and allocates its blocks, if the file system can.
Status Reserve(int fd, const Path& path, std::uint64_t size_bytes) {
  const auto size = static_cast<off_t>(size_bytes);
  int error = EINTR;
  while (error == EINTR) error = fallocate(fd, 0, 0, size) == 0 ? 0 : errno;
  if (error != 0 && error != EOPNOTSUPP && error != ENOSYS)
    return SystemError(error, fmt::format("reserve {} bytes for", size_bytes), path);
  if (ftruncate(fd, size) == 0) return Status::Ok();
  return SystemError(errno, fmt::format("set the length to {} bytes of", size_bytes), path);
}

}  // namespace

Result<std::unique_ptr<UpdatableFile>> OpenPosixUpdatable(const Path& path,
                                                          std::uint64_t size_bytes, bool direct) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor, OpenDescriptor(path, kFlags, "open"));
  struct stat facts = {};
  if (fstat(descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode)) return Fail(NotRegular(path));
  RHIZOME_RETURN_IF_ERROR(Reserve(descriptor.get(), path, size_bytes));
  // Some file systems refuse the flag, others refuse the reads.
  direct = direct && fcntl(descriptor.get(), F_SETFL, O_DIRECT) == 0;
  const std::uint32_t unit = direct ? DirectAlignment(descriptor.get()) : 0;
  if (fcntl(descriptor.get(), F_SETFL, unit != 0 ? O_DIRECT : 0) != 0)
    return Fail(SystemError(errno, "fcntl", path));
  return std::make_unique<PosixUpdatableFile>(std::move(descriptor), path, size_bytes,
                                              std::max<std::uint32_t>(unit, 1));
}

Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(FileSystem& fs, const Path& path,
                                                     std::uint64_t size_bytes,
                                                     const FileSystem::ReadOptions& options) {
  if (auto* const files = dynamic_cast<UpdatableFiles*>(&fs))
    return files->OpenUpdatable(path, size_bytes, options);
  return Fail(Status::Unsupported(
      fmt::format("this file system cannot rewrite '{}' in place", path.string())));
}

}  // namespace internal
}  // namespace rhizome
