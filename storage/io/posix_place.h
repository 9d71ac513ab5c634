#pragma once

#include <fcntl.h>

#include <memory>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "storage/io/posix_file.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns `path` made absolute, so that it keeps its meaning if the process changes its working
/// directory. Links are not resolved. A fake disk has no working directory; its paths are returned
/// unchanged.
Path AbsolutePath(FileSystem& fs, const Path& path);

}  // namespace internal

inline namespace internal {

/// An enclosure of a folder on the real file system that can be held: after Hold, `root` must name
/// the same folder as during Hold. If the folder was moved, removed or replaced, no function of the
/// file system accesses anything through `root`, because the folder there may be another store.
/// Threads: any, but Hold must come first.
class HeldFolder : public FolderEnclosure {
 public:
  /// Errors: see FileSystem::Stat.
  virtual Status Hold() = 0;

  /// Checks that `root` still names the held folder; OK before Hold. Errors: kIoError, it does not.
  virtual Status Check() const = 0;
};

/// See FileSystem::Enclose.
std::shared_ptr<HeldFolder> EnclosePosix(const Path& root);

/// Calls Hold of an enclosure on the real file system. Does nothing for nullptr, the enclosure of a
/// fake.
Status HoldFolder(const std::shared_ptr<FolderEnclosure>& enclosure);

/// Calls HeldFolder::Check of an enclosure. Returns OK for nullptr.
Status CheckFolder(const std::shared_ptr<FolderEnclosure>& enclosure);

/// Creates the error for a `path` that should be a regular file and is not: kCorruption below an
/// enclosed root, where a store writes only files; elsewhere kIoError.
Status NotRegular(const Path& path);

/// The target of a system call of the "at" family: an open folder and a name in it.
///
/// Below an enclosed root the folder is opened without following links, and the name is a single
/// component, which is not followed either. For any other path, the folder is the working directory
/// and the name is the whole path, which the system resolves as usual.
class Place {
 public:
  /// `operation` is a word for error messages. Errors: kNotFound, a parent folder is missing;
  /// kCorruption, a parent folder is a link.
  static Result<Place> Find(const Path& path, std::string_view operation);

  int folder() const { return folder_.get() >= 0 ? folder_.get() : AT_FDCWD; }
  const char* name() const { return name_.c_str(); }

  /// O_NOFOLLOW below an enclosed root, else 0.
  int no_follow() const { return enclosed_ ? O_NOFOLLOW : 0; }

  /// Calls openat(2) with O_CLOEXEC; retries EINTR.
  Result<Descriptor> Open(int flags, std::string_view operation) const;

  /// Creates the Status for a call that failed here. Names the link if one caused the failure.
  Status Error(int error_number, std::string_view operation) const;

 private:
  Place(Path path, Descriptor folder, std::string name, bool enclosed)
      : path_(std::move(path)),
        folder_(std::move(folder)),
        name_(std::move(name)),
        enclosed_(enclosed) {}

  Path path_;
  Descriptor folder_;
  std::string name_;
  bool enclosed_;
};

}  // namespace internal
}  // namespace rhizome
