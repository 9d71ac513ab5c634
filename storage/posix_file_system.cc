#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/lock_holder.h"
#include "rhizome/storage/posix_file.h"

namespace rhizome {
namespace {

class PosixLock : public FileLock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;  // closing it releases the flock
};

DirectoryEntry::Kind KindOf(std::filesystem::file_type type) {
  if (type == std::filesystem::file_type::regular) return DirectoryEntry::Kind::kFile;
  if (type == std::filesystem::file_type::directory) return DirectoryEntry::Kind::kDirectory;
  return DirectoryEntry::Kind::kOther;
}

/// Does `path` still name the locked file? It may have been removed while we waited for nothing.
bool StillLinked(int fd, const Path& path) {
  struct stat locked = {};
  struct stat named = {};
  return fstat(fd, &locked) == 0 && lstat(path.c_str(), &named) == 0 &&
         locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

/// Only the holder may write, so that a loser never wipes out the winner's name.
Status WriteLockContent(int fd, const Path& path, std::string_view content) {
  if (ftruncate(fd, 0) != 0) return SystemError(errno, "truncate", path);
  return WriteFully(fd, std::as_bytes(std::span(content.data(), content.size())), path, 0);
}

Result<Descriptor> OpenAndLock(const Path& path, bool exclusive) {
  const int flags = exclusive ? O_RDWR | O_CREAT : O_RDONLY;
  RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor,
                           OpenDescriptor(path, flags | O_NOFOLLOW | O_NONBLOCK, "open lock"));
  struct stat facts = {};
  if (fstat(descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode))
    return Fail(Status::IoError(fmt::format("lock '{}' is not a regular file", path.string())));
  while (flock(descriptor.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return Fail(SystemError(errno, "lock", path));
    return Fail(
        Status::Busy(fmt::format("'{}' is locked by another process: {}; wait for it or end it",
                                 path.string(), DescribeLockHolder(descriptor.get()))));
  }
  return descriptor;
}

class PosixFileSystem : public FileSystem {
 public:
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    return OpenPosixRead(path, options.direct);
  }

  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    RHIZOME_ASSIGN_OR_RETURN(
        Descriptor descriptor,
        OpenDescriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create"));
    return MakePosixWritable(std::move(descriptor), path, 0);
  }

  Result<std::unique_ptr<WritableFile>> OpenAppend(const Path& path,
                                                   std::uint64_t keep_bytes) override;
  Status CreateDirectory(const Path& path) override {
    return mkdir(path.c_str(), 0777) == 0 ? Status::Ok()
                                          : SystemError(errno, "create folder", path);
  }
  Status RemoveFile(const Path& path) override {
    return unlink(path.c_str()) == 0 ? Status::Ok() : SystemError(errno, "remove", path);
  }
  Status RemoveDirectory(const Path& path) override {
    return rmdir(path.c_str()) == 0 ? Status::Ok() : SystemError(errno, "remove folder", path);
  }
  Status LinkFile(const Path& from, const Path& to) override;
  Status SyncDirectory(const Path& path) override;
  Result<std::vector<DirectoryEntry>> List(const Path& path) override;
  Result<FileInfo> Stat(const Path& path) override;
  Result<std::uint64_t> FreeBytes(const Path& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override;
};

Result<std::unique_ptr<WritableFile>> PosixFileSystem::OpenAppend(const Path& path,
                                                                  std::uint64_t keep_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(
      Descriptor descriptor,
      OpenDescriptor(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, "open for appending"));
  struct stat facts = {};
  if (fstat(descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode))
    return Fail(Status::IoError(fmt::format("'{}' is not a regular file", path.string())));
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (keep_bytes > size) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has {} bytes, {} cannot be kept", path.string(), size, keep_bytes)));
  }
  if (keep_bytes < size && ftruncate(descriptor.get(), static_cast<off_t>(keep_bytes)) != 0)
    return Fail(SystemError(errno, "truncate", path));
  return MakePosixWritable(std::move(descriptor), path, keep_bytes);
}

Status PosixFileSystem::LinkFile(const Path& from, const Path& to) {
  if (link(from.c_str(), to.c_str()) == 0) return {};
  const int error = errno;
  const std::string what = fmt::format("link '{}' as '{}'", from.string(), to.string());
  // EPERM is also what FAT says, and a kernel that protects other users' files: a copy works there.
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EXDEV ||
      error == EMLINK) {
    return Status::Unsupported(what + ": " + std::generic_category().message(error));
  }
  return Status::FromErrno(error, what);
}

Status PosixFileSystem::SyncDirectory(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(
      const Descriptor descriptor,
      OpenDescriptor(path, O_RDONLY | O_DIRECTORY, "open folder"));
  return fsync(descriptor.get()) == 0 ? Status::Ok() : SystemError(errno, "sync folder", path);
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::List(const Path& path) {
  std::error_code error;
  std::filesystem::directory_iterator it(path, error);
  std::vector<DirectoryEntry> entries;
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::error_code gone;  // removed since it was listed: the kind is then kOther
    const auto type = it->symlink_status(gone).type();
    entries.push_back({it->path().filename().string(), KindOf(type)});
  }
  if (error) return Fail(SystemError(error.value(), "list", path));
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Result<FileInfo> PosixFileSystem::Stat(const Path& path) {
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  FileInfo info;
  if (S_ISREG(facts.st_mode)) info.kind = DirectoryEntry::Kind::kFile;
  if (S_ISDIR(facts.st_mode)) info.kind = DirectoryEntry::Kind::kDirectory;
  info.size_bytes = static_cast<std::uint64_t>(facts.st_size);
  info.link_count = facts.st_nlink;
  return info;
}

Result<std::uint64_t> PosixFileSystem::FreeBytes(const Path& path) {
  struct statvfs facts = {};
  while (statvfs(path.c_str(), &facts) != 0) {
    if (errno != EINTR) return Fail(SystemError(errno, "statvfs", path));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{facts.f_bavail}, std::uint64_t{facts.f_frsize}, &bytes))
    bytes = UINT64_MAX;
  return bytes;
}

Result<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const Path& path, LockMode mode,
                                                        std::string_view content) {
  const bool exclusive = mode == LockMode::kExclusive;
  // The holder may remove the file as its last act. We then hold a lock that nobody else can see,
  // and try again with the file that has taken its place.
  for (int attempt = 0; attempt < 100; ++attempt) {
    RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor, OpenAndLock(path, exclusive));
    if (!StillLinked(descriptor.get(), path)) continue;
    if (exclusive) RHIZOME_RETURN_IF_ERROR(WriteLockContent(descriptor.get(), path, content));
    return std::make_unique<PosixLock>(std::move(descriptor));
  }
  return Fail(Status::Busy(fmt::format(
      "lock '{}' keeps being removed and made anew by other processes", path.string())));
}

}  // namespace

FileSystem& FileSystem::Posix() {
  static auto* const instance = new PosixFileSystem;  // never destroyed: used by other statics
  return *instance;
}

}  // namespace rhizome
