#include "storage/io/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "storage/io/io_queue.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckRegular(int fd, const Path& path, struct stat& facts) {
  if (fstat(fd, &facts) != 0) return SystemError(errno, "stat", path);
  if (S_ISREG(facts.st_mode)) return {};
  return NotRegular(path);
}

Result<Descriptor> OpenRegular(const Path& path, int flags) {
  // O_NONBLOCK, because opening a pipe would wait for its writer. OpenPosixRead clears the flag,
  // which would change the behaviour of io_uring's reads.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  return OpenDescriptor(path, kFlags | flags, "open");
}

}  // namespace

Result<std::size_t> ReadOnce(int fd, std::uint64_t offset_bytes, std::span<std::byte> out,
                             const Path& path) {
  const std::size_t want = std::min(out.size(), kMaxTransferBytes);
  while (true) {
    const ssize_t got = pread(fd, out.data(), want, static_cast<off_t>(offset_bytes));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    return Fail(
        SystemError(errno, fmt::format("read of {} bytes at offset {}", want, offset_bytes), path));
  }
}

std::uint32_t DirectAlignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx facts = {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) == 0 &&
      (facts.stx_mask & STATX_DIOALIGN) != 0) {
    const std::uint32_t unit = std::max(facts.stx_dio_mem_align, facts.stx_dio_offset_align);
    // Buffers are aligned to 4 KiB (AlignedBuffer), so larger blocks are not supported.
    const bool usable = facts.stx_dio_offset_align != 0 && std::has_single_bit(unit) &&
                        unit <= AlignedBuffer::kAlignmentBytes;
    return usable ? unit : 0;
  }
#endif
  // Kernels before 6.1, and some file systems, do not report it. Sectors have 512 or 4096 bytes, so
  // find the smaller read that succeeds.
  const Result<AlignedBuffer> probe = AlignedBuffer::Allocate(AlignedBuffer::kAlignmentBytes);
  if (!probe) return 0;
  for (const std::uint32_t unit : {512U, 4096U}) {
    if (pread(fd, probe->bytes().data(), unit, 0) >= 0) return unit;
  }
  return 0;
}

Descriptor::~Descriptor() { static_cast<void>(Close()); }

int Descriptor::Close() {
  if (fd_ < 0) return 0;
  const int error = close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
  return error == EINTR ? 0 : error;  // Linux has closed it nevertheless
}

Status SystemError(int error_number, std::string_view operation, const Path& path) {
  if (error_number == ELOOP) {
    return Status::IoError(fmt::format("{} '{}': it is a symbolic link, which is not followed here",
                                       operation, path.string()));
  }
  return Status::FromErrno(error_number, fmt::format("{} '{}'", operation, path.string()));
}

Result<Descriptor> OpenDescriptor(const Path& path, int flags, std::string_view operation) {
  RHIZOME_ASSIGN_OR_RETURN(const Place place, Place::Find(path, operation));
  return place.Open(flags, operation);
}

Result<std::unique_ptr<ReadableFile>> OpenPosixRead(const Path& path, bool direct) {
  Result<Descriptor> opened = OpenRegular(path, direct ? O_DIRECT : 0);
  if (!opened && direct) {  // EINVAL: no direct reads here; other errors occur again
    direct = false;
    opened = OpenRegular(path, 0);
  }
  if (!opened) return Fail(opened.error());
  Descriptor descriptor = *std::move(opened);
  struct stat facts = {};
  RHIZOME_RETURN_IF_ERROR(CheckRegular(descriptor.get(), path, facts));

  const std::uint32_t unit = direct ? DirectAlignment(descriptor.get()) : 0;
  const int keep = unit != 0 ? O_DIRECT : 0;
  if (fcntl(descriptor.get(), F_SETFL, keep) != 0) return Fail(SystemError(errno, "fcntl", path));
  return std::make_unique<PosixReads<ReadableFile>>(std::move(descriptor), path,
                                                    static_cast<std::uint64_t>(facts.st_size),
                                                    std::max<std::uint32_t>(unit, 1));
}

Status WriteFully(int fd, std::span<const std::byte> bytes, const Path& path,
                  std::uint64_t offset_bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), std::min(bytes.size(), kMaxTransferBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      return SystemError(
          error, fmt::format("write of {} bytes at offset {}", bytes.size(), offset_bytes), path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset_bytes += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace internal
}  // namespace rhizome
