#include "storage/io/posix_place.h"

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "storage/base/mutant.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {
namespace {

// This file resolves paths for PosixFileSystem. Place::Find checks whether a path is below an
// enclosed root (Roots). If so, it opens the parent folder without following links (OpenBeneath:
// openat2, or WalkTo), and refuses if the root no longer names the folder that a handle holds
// (HeldFolder). Otherwise it uses the path as it is.

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

template <typename Open>
int Retried(const Open& open) {
  int fd = 0;
  do {
    fd = open();
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int OpenRoot(const std::string& root) {
  return Retried([&] { return open(root.empty() ? "/" : root.c_str(), kFolderFlags); });
}

/// A folder, identified by device and inode number. The inode number can be reused once no process
/// has the folder open.
struct FolderKey {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FolderKey&) const = default;
};

/// Returns the key of an open folder; nullopt, with errno set, if fstat fails.
std::optional<FolderKey> KeyOf(int folder) {
  struct stat facts = {};
  if (fstat(folder, &facts) != 0) return std::nullopt;
  return FolderKey{facts.st_dev, facts.st_ino};
}

/// The roots that are currently enclosed, with reference counts, and the folders that each root
/// must name (HeldFolder): none, or one per handle. Threads: any.
class Roots {
 public:
  static Roots& Instance() {
    static auto* const instance = new Roots;  // never destroyed: used by other statics
    return *instance;
  }
  void Add(const std::string& root) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++roots_[root].count;
  }
  void Remove(const std::string& root, std::optional<FolderKey> held) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto at = roots_.find(root);
    std::vector<FolderKey>& keys = at->second.held;
    if (held) keys.erase(std::find(keys.begin(), keys.end(), *held));
    if (--at->second.count == 0) roots_.erase(at);
  }
  void Hold(const std::string& root, FolderKey key) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    roots_[root].held.push_back(key);
  }

  /// Returns whether `root` may name the folder `key`; `key` is nullopt if there is no folder.
  bool Admits(std::string_view root, std::optional<FolderKey> key) const RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto at = roots_.find(root);
    if (at == roots_.end() || at->second.held.empty()) return true;
    const std::vector<FolderKey>& held = at->second.held;
    return key && std::find(held.begin(), held.end(), *key) != held.end();
  }

  /// Returns the length of the outermost enclosed root above `path`; npos if there is none.
  std::size_t LengthFor(const std::string& path) const RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (roots_.empty()) return std::string::npos;
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
      if (roots_.contains(std::string_view(path).substr(0, at)) &&
          path.find_first_not_of('/', at) != std::string::npos)
        return at;
    return std::string::npos;
  }

 private:
  struct Root {
    int count = 0;
    std::vector<FolderKey> held;
  };
  mutable Mutex mutex_;
  std::map<std::string, Root, std::less<>> roots_ RHIZOME_GUARDED_BY(mutex_);
};

Status NotHeld(std::string_view root) {
  return Status::IoError(
      fmt::format("the folder '{}' was moved, removed or replaced after it was opened; put it "
                  "back, or open it again",
                  root));
}

class PosixEnclosure final : public HeldFolder {
 public:
  explicit PosixEnclosure(std::string root) : root_(std::move(root)) {
    Roots::Instance().Add(root_);
  }
  ~PosixEnclosure() override { Roots::Instance().Remove(root_, held_); }

  // The folder remains open, so that its inode number is not reused.
  Status Hold() override {
    if (held_) return Status::Ok();
    folder_ = Descriptor(OpenRoot(root_));
    if (folder_.get() < 0) return SystemError(errno, "open folder", root_);
    const auto key = KeyOf(folder_.get());
    if (!key) return SystemError(errno, "stat", root_);
    Roots::Instance().Hold(root_, *key);
    held_ = key;
    return Status::Ok();
  }

  Status Check() const override {
    if (!held_) return Status::Ok();
    struct stat facts = {};
    const bool there = stat(root_.empty() ? "/" : root_.c_str(), &facts) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) return SystemError(errno, "stat", root_);
    return there && FolderKey{facts.st_dev, facts.st_ino} == *held_ ? Status::Ok() : NotHeld(root_);
  }

 private:
  const std::string root_;
  Descriptor folder_;
  std::optional<FolderKey> held_;
};

/// Opens the folder `relative` below `root` without following any link; on failure returns -1 and
/// sets errno. For kernels (before 5.6) and system call filters without openat2.
int WalkTo(int root, const std::string& relative) {
  Descriptor at;
  for (std::size_t begin = 0; begin < relative.size();) {
    const std::size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string name = relative.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return errno = EXDEV, -1;
    const int from = at.get() >= 0 ? at.get() : root;
    const int next = Retried([&] { return openat(from, name.c_str(), kFolderFlags | O_NOFOLLOW); });
    if (next < 0) return -1;
    at = Descriptor(next);
  }
  return at.get() >= 0 ? fcntl(at.get(), F_DUPFD_CLOEXEC, 0)
                       : openat(root, ".", kFolderFlags | O_NOFOLLOW);
}

int OpenBeneath(int root, const std::string& relative) {
  if (RHIZOME_MUTANT("links in a store are followed"))
    return openat(root, relative.c_str(), kFolderFlags);
#ifdef SYS_openat2
  open_how how = {};
  how.flags = kFolderFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(SYS_openat2, root, relative.c_str(), &how, sizeof(how));
  // The kernel returns EAGAIN if a concurrent rename or mount prevents it from proving the path
  // safe.
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
    return static_cast<int>(fd);
#endif
  return WalkTo(root, relative);
}

/// Returns the file type of an entry (S_IFMT bits); 0 if there is none.
mode_t KindAt(int folder, const char* name) {
  struct stat facts = {};
  return fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_mode & S_IFMT : 0;
}

bool IsLink(int folder, const char* name) { return KindAt(folder, name) == S_IFLNK; }

Status LinkInside(std::string_view operation, const Path& path, const std::string& link) {
  return Status::Corruption(
      fmt::format("{} '{}': '{}' is a symbolic link, and links are not followed inside a store, a "
                  "folder of backups or a Zarr array; replace it by its target, or remove it "
                  "(`scratch` names a place for scratch files elsewhere)",
                  operation, path.string(), link));
}

/// Returns the error for a `path` whose parent folder could not be opened. Names the offending
/// link, if there is one.
Status WayError(int error_number, std::string_view operation, const Path& path,
                std::size_t root_bytes) {
  const std::string& text = path.native();
  for (std::size_t end = text.find('/', root_bytes + 1); end != std::string::npos;
       end = text.find('/', end + 1)) {
    const std::string way = text.substr(0, end);
    if (IsLink(AT_FDCWD, way.c_str())) return LinkInside(operation, path, way);
  }
  return SystemError(error_number, operation, path);
}

}  // namespace

std::shared_ptr<HeldFolder> EnclosePosix(const Path& root) {
  std::string text = root.native();
  while (text.ends_with('/')) text.pop_back();
  return std::make_shared<PosixEnclosure>(std::move(text));
}

Status HoldFolder(const std::shared_ptr<FolderEnclosure>& enclosure) {
  auto* const folder = dynamic_cast<HeldFolder*>(enclosure.get());
  return folder == nullptr ? Status::Ok() : folder->Hold();
}

Status CheckFolder(const std::shared_ptr<FolderEnclosure>& enclosure) {
  const auto* const folder = dynamic_cast<const HeldFolder*>(enclosure.get());
  return folder == nullptr ? Status::Ok() : folder->Check();
}

// The path of the working directory contains no links, so leading ".." can be resolved textually.
// This reveals whether the path is inside an enclosed folder.
Path AbsolutePath(FileSystem& fs, const Path& path) {
  if (path.empty() || path.is_absolute() || fs.catalog_disk() != nullptr) return path;
  std::error_code error;
  Path absolute = std::filesystem::current_path(error);
  if (error) return path;  // the working directory was removed: relative paths lead nowhere
  auto part = path.begin();
  for (; part != path.end() && (*part == "." || *part == ".."); ++part)
    if (*part == "..") absolute = absolute.parent_path();
  for (; part != path.end(); ++part) absolute /= *part;
  return absolute;
}

Status NotRegular(const Path& path) {
  const bool enclosed = Roots::Instance().LengthFor(path.native()) != std::string::npos;
  if (!enclosed) return Status::IoError(fmt::format("'{}' is not a regular file", path.string()));
  return Status::Corruption(
      fmt::format("'{}' is not a regular file, but a store or a folder of backups holds only files "
                  "and folders; remove it",
                  path.string()));
}

Result<Place> Place::Find(const Path& path, std::string_view operation) {
  std::string text = path.native();
  const std::size_t root_bytes = Roots::Instance().LengthFor(text);
  if (root_bytes == std::string::npos) return Place(path, Descriptor(), std::move(text), false);
  while (text.ends_with('/')) text.pop_back();
  const std::size_t slash = text.rfind('/');
  std::string name = text.substr(slash + 1);
  const std::string root = text.substr(0, root_bytes);
  Descriptor folder(OpenRoot(root));
  const int error = folder.get() < 0 ? errno : 0;
  const bool gone = error == ENOENT || error == ENOTDIR;
  if ((error == 0 || gone) &&
      !Roots::Instance().Admits(root, gone ? std::nullopt : KeyOf(folder.get())))
    return Fail(NotHeld(root));
  if (error != 0) return Fail(SystemError(error, operation, path));
  const std::size_t begin = text.find_first_not_of('/', root_bytes);
  if (slash > begin) {
    Descriptor inner(OpenBeneath(folder.get(), text.substr(begin, slash - begin)));
    if (inner.get() < 0) return Fail(WayError(errno, operation, path, root_bytes));
    folder = std::move(inner);
  }
  if (name == "..") return Fail(SystemError(EXDEV, operation, path));
  return Place(path, std::move(folder), std::move(name), true);
}

Result<Descriptor> Place::Open(int flags, std::string_view operation) const {
  while (true) {
    const int fd = openat(folder(), name(), flags | no_follow() | O_CLOEXEC, 0666);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) return Fail(Error(errno, operation));
  }
}

Status Place::Error(int error_number, std::string_view operation) const {
  const bool maybe_link = error_number == ELOOP || error_number == ENOTDIR;
  if (enclosed_ && maybe_link && IsLink(folder(), name()))
    return LinkInside(operation, path_, path_.string());
  // There may be a pipe without a reader, a device that does not exist, or a folder.
  const bool maybe_special =
      error_number == ENXIO || error_number == ENODEV || error_number == EISDIR;
  const mode_t kind = enclosed_ && maybe_special ? KindAt(folder(), name()) : S_IFREG;
  if (kind != 0 && kind != S_IFREG) return NotRegular(path_);
  return SystemError(error_number, operation, path_);
}

}  // namespace internal
}  // namespace rhizome
