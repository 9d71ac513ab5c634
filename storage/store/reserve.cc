#include "storage/store/reserve.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "storage/base/exceptions.h"
#include "storage/io/posix_file.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {
namespace {

// With less free space, RocksDB's preallocation may use up all of it.
constexpr std::uint64_t kNearlyFull = 8 * kReserveBytes;

/// The file FORMAT, after whose end the reserve is allocated. Every store has it; it is small and
/// never changes.
struct Head {
  Descriptor descriptor;
  std::uint64_t size_bytes = 0;
  std::uint64_t disk_bytes = 0;
};

Result<Head> OpenHead(FileSystem& fs, const Path& store) {
  const Path path = store / kFormatName;
  if (fs.catalog_disk() != nullptr) return Fail(Status::Unsupported("a fake disk"));
  RHIZOME_RETURN_IF_ERROR(ReadFormat(fs, store));  // ensures that the file is ours
  Head head;
  RHIZOME_ASSIGN_OR_RETURN(head.descriptor,
                           OpenDescriptor(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, "open"));
  struct stat facts = {};
  if (fstat(head.descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode)) return Fail(Status::IoError("no regular file"));
  head.size_bytes = static_cast<std::uint64_t>(facts.st_size);
  head.disk_bytes = static_cast<std::uint64_t>(facts.st_blocks) * 512;
  return head;
}

/// Allocates everything or nothing: if the disk is too full, a file system may have allocated a
/// part, which is released again.
bool Allocate(const Head& head, std::uint64_t bytes) {
  const int fd = head.descriptor.get();
  if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0) return true;
  return ftruncate(fd, static_cast<off_t>(head.size_bytes)) == 0 && false;
}

bool IsNearlyFull(FileSystem& fs, const Path& store) {
  if (fs.catalog_disk() != nullptr) return false;
  const auto free = fs.FreeBytes(store);
  return free && *free < kNearlyFull;
}

Status GiveUp(FileSystem& fs, const Path& store) {
  RHIZOME_ASSIGN_OR_RETURN(const Head head, OpenHead(fs, store));
  if (ftruncate(head.descriptor.get(), static_cast<off_t>(head.size_bytes)) == 0)
    return Status::Ok();
  return SystemError(errno, "truncate", store / kFormatName);
}

/// Allocates the reserve again. On a full disk it tries half the size, a quarter, and so on.
Status TakeBack(FileSystem& fs, const Path& store) {
  constexpr std::uint64_t kMinBytes = std::uint64_t{128} << 10;
  RHIZOME_ASSIGN_OR_RETURN(const Head head, OpenHead(fs, store));
  for (std::uint64_t bytes = kReserveBytes; bytes >= kMinBytes; bytes /= 2)
    if (Allocate(head, bytes)) break;
  return Status::Ok();
}

}  // namespace

void SetReserveAside(FileSystem& fs, const Path& store) noexcept {
  static_cast<void>(Guarded([&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const Head head, OpenHead(fs, store));
    if (head.disk_bytes < kReserveBytes && !IsNearlyFull(fs, store))
      static_cast<void>(Allocate(head, kReserveBytes));
    return Status::Ok();
  }));
}

ReserveInUse::ReserveInUse(FileSystem& fs, Path store) noexcept
    : fs_(fs), store_(std::move(store)) {
  static_cast<void>(Guarded([&] {
    given_up_ = IsNearlyFull(fs_, store_);
    return given_up_ ? GiveUp(fs_, store_) : Status::Ok();
  }));
}

ReserveInUse::~ReserveInUse() {
  if (given_up_) static_cast<void>(Guarded([&] { return TakeBack(fs_, store_); }));
}

}  // namespace internal
}  // namespace rhizome
