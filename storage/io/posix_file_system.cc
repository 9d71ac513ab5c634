#include <dirent.h>
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

#include "rhizome/file_system.h"
#include "storage/io/lock_holder.h"
#include "storage/io/posix_file.h"
#include "storage/io/posix_place.h"

namespace rhizome {
namespace {

class PosixLock : public FileLock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;  // closing it releases the flock
};

DirectoryEntry::Kind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return DirectoryEntry::Kind::kFile;
  if (S_ISDIR(mode)) return DirectoryEntry::Kind::kDirectory;
  return DirectoryEntry::Kind::kOther;
}

/// Returns the kind of an entry that readdir returned; kOther if it was removed since then.
DirectoryEntry::Kind KindOf(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return KindOf(DTTOIF(entry.d_type));
  struct stat facts = {};
  return fstatat(folder, entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0
             ? KindOf(facts.st_mode)
             : DirectoryEntry::Kind::kOther;
}

/// Returns whether `place` still names the locked file. The previous holder may have removed it
/// between our open and our flock.
bool StillLinked(int fd, const Place& place) {
  struct stat locked = {};
  struct stat named = {};
  return fstat(fd, &locked) == 0 &&
         fstatat(place.folder(), place.name(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

/// Writes the holder's text. Must be called only while holding the lock, so that a process that
/// failed to lock never overwrites the holder's name.
Status WriteLockContent(int fd, const Path& path, std::string_view content) {
  // Writing before truncating reuses the allocated block, as a full disk might not provide another.
  RHIZOME_RETURN_IF_ERROR(
      WriteFully(fd, std::as_bytes(std::span(content.data(), content.size())), path, 0));
  if (ftruncate(fd, static_cast<off_t>(content.size())) == 0) return Status::Ok();
  return SystemError(errno, "truncate", path);
}

/// Removes a lock file that was created but could not be written because the disk is full. Other
/// processes that have it open notice this by StillLinked.
void RemoveIfEmpty(int fd, const Place& place) {
  struct stat facts = {};
  if (fstat(fd, &facts) == 0 && facts.st_size == 0)
    static_cast<void>(unlinkat(place.folder(), place.name(), 0));
}

// If `content` is empty, the caller only wants to know whether the lock is free, as for the PIN of
// a generation. The error then does not name the holder: asking the kernel for it waits for all
// processors, about 10 ms.
Result<Descriptor> OpenAndLock(const Place& place, const Path& path, bool exclusive,
                               std::string_view content) {
  const int flags = exclusive ? O_RDWR | O_CREAT : O_RDONLY;
  RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor,
                           place.Open(flags | O_NOFOLLOW | O_NONBLOCK, "open lock"));
  struct stat facts = {};
  if (fstat(descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode)) return Fail(NotRegular(path));
  while (flock(descriptor.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return Fail(SystemError(errno, "lock", path));
    if (exclusive && content.empty())
      return Fail(Status::Busy(fmt::format("'{}' is locked", path.string())));
    return Fail(Status::Busy(
        fmt::format("'{}' is locked by {}", path.string(), DescribeLockHolder(descriptor.get()))));
  }
  return descriptor;
}

class PosixFileSystem : public FileSystem, public UpdatableFiles {
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
  Result<std::unique_ptr<UpdatableFile>> OpenUpdatable(const Path& path, std::uint64_t size_bytes,
                                                       const ReadOptions& options) override {
    return OpenPosixUpdatable(path, size_bytes, options.direct);
  }
  Status CreateDirectory(const Path& path) override {
    return At(path, "create folder",
              [](const Place& at) { return mkdirat(at.folder(), at.name(), 0777); });
  }
  Status RemoveFile(const Path& path) override {
    return At(path, "remove", [](const Place& at) { return unlinkat(at.folder(), at.name(), 0); });
  }
  Status RemoveDirectory(const Path& path) override {
    return At(path, "remove folder",
              [](const Place& at) { return unlinkat(at.folder(), at.name(), AT_REMOVEDIR); });
  }
  Status LinkFile(const Path& from, const Path& to) override;
  Status SyncDirectory(const Path& path) override;
  Result<std::vector<DirectoryEntry>> List(const Path& path) override;
  Result<FileInfo> Stat(const Path& path) override;
  Result<std::uint64_t> FreeBytes(const Path& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override;
  std::shared_ptr<FolderEnclosure> Enclose(const Path& root) override { return EnclosePosix(root); }

 private:
  /// Runs a system call that returns 0 on success.
  template <typename Call>
  static Status At(const Path& path, std::string_view operation, const Call& call) {
    RHIZOME_ASSIGN_OR_RETURN(const Place place, Place::Find(path, operation));
    return call(place) == 0 ? Status::Ok() : place.Error(errno, operation);
  }
};

Result<std::unique_ptr<WritableFile>> PosixFileSystem::OpenAppend(const Path& path,
                                                                  std::uint64_t keep_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(
      Descriptor descriptor,
      OpenDescriptor(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, "open for appending"));
  struct stat facts = {};
  if (fstat(descriptor.get(), &facts) != 0) return Fail(SystemError(errno, "stat", path));
  if (!S_ISREG(facts.st_mode)) return Fail(NotRegular(path));
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (keep_bytes > size) {
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' has {} bytes, so it cannot be truncated to {}", path.string(), size, keep_bytes)));
  }
  if (keep_bytes < size && ftruncate(descriptor.get(), static_cast<off_t>(keep_bytes)) != 0)
    return Fail(SystemError(errno, "truncate", path));
  return MakePosixWritable(std::move(descriptor), path, keep_bytes);
}

Status PosixFileSystem::LinkFile(const Path& from, const Path& to) {
  RHIZOME_ASSIGN_OR_RETURN(const Place old_name, Place::Find(from, "link"));
  RHIZOME_ASSIGN_OR_RETURN(const Place name, Place::Find(to, "link as"));
  if (linkat(old_name.folder(), old_name.name(), name.folder(), name.name(), 0) == 0) return {};
  const int error = errno;
  const std::string what = fmt::format("link '{}' as '{}'", from.string(), to.string());
  // FAT fails with EPERM, as does a kernel that protects other users' files: a copy works there.
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EXDEV ||
      error == EMLINK) {
    return Status::Unsupported(what + ": " + std::generic_category().message(error));
  }
  return Status::FromErrno(error, what);
}

Status PosixFileSystem::SyncDirectory(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const Descriptor descriptor,
                           OpenDescriptor(path, O_RDONLY | O_DIRECTORY, "open folder"));
  return fsync(descriptor.get()) == 0 ? Status::Ok() : SystemError(errno, "sync folder", path);
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::List(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor,
                           OpenDescriptor(path, O_RDONLY | O_DIRECTORY, "list"));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(descriptor.get()), closedir);
  if (folder == nullptr) return Fail(SystemError(errno, "list", path));
  const int fd = descriptor.Release();  // closedir closes it
  std::vector<DirectoryEntry> entries;
  errno = 0;
  while (const dirent* const entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back({std::string(name), KindOf(fd, *entry)});
    errno = 0;
  }
  if (errno != 0) return Fail(SystemError(errno, "list", path));
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Result<FileInfo> PosixFileSystem::Stat(const Path& path) {
  struct stat facts = {};
  RHIZOME_RETURN_IF_ERROR(At(path, "stat", [&](const Place& at) {
    return fstatat(at.folder(), at.name(), &facts, AT_SYMLINK_NOFOLLOW);
  }));
  FileInfo info;
  info.kind = KindOf(facts.st_mode);
  info.size_bytes = static_cast<std::uint64_t>(facts.st_size);
  info.link_count = facts.st_nlink;
  return info;
}

Result<std::uint64_t> PosixFileSystem::FreeBytes(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const Descriptor place, OpenDescriptor(path, O_PATH, "statvfs"));
  struct statvfs facts = {};
  while (fstatvfs(place.get(), &facts) != 0) {
    if (errno != EINTR) return Fail(SystemError(errno, "statvfs", path));
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{facts.f_bavail}, std::uint64_t{facts.f_frsize}, &bytes))
    bytes = UINT64_MAX;
  return bytes;
}

/// Locks a file in these steps:
///   1. Opens the lock file, creating it for an exclusive lock, and takes the flock without
///      waiting.
///   2. Checks that the name still refers to the locked file, and starts again if not.
///   3. If the lock is exclusive and has content, writes the content into the file; if that fails,
///      removes the file if it is empty.
Result<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const Path& path, LockMode mode,
                                                        std::string_view content) {
  const bool exclusive = mode == LockMode::kExclusive;
  // A holder may remove the file as its last act. We would then hold a lock that no other process
  // can see, so we retry with the file that has replaced it.
  for (int attempt = 0; attempt < 100; ++attempt) {
    RHIZOME_ASSIGN_OR_RETURN(const Place place, Place::Find(path, "open lock"));
    RHIZOME_ASSIGN_OR_RETURN(Descriptor descriptor, OpenAndLock(place, path, exclusive, content));
    if (!StillLinked(descriptor.get(), place)) continue;
    if (exclusive && !content.empty()) {
      const Status written = WriteLockContent(descriptor.get(), path, content);
      if (!written.ok()) RemoveIfEmpty(descriptor.get(), place);
      RHIZOME_RETURN_IF_ERROR(written);
    }
    return std::make_unique<PosixLock>(std::move(descriptor));
  }
  return Fail(Status::Busy(
      fmt::format("other processes repeatedly remove and create the lock '{}'", path.string())));
}

}  // namespace

FileSystem& FileSystem::Posix() {
  static auto* const instance = new PosixFileSystem;  // never destroyed: used by other statics
  return *instance;
}

}  // namespace rhizome
