#pragma once

#include <fcntl.h>

#include <memory>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/posix_file.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns `path` made absolute, so that it means the same when the process has moved to another
/// working directory. Links stay as written. A fake disk has no working directory: its paths stay
/// as they are.
Path AbsolutePath(FileSystem& fs, const Path& path);

}  // namespace internal

inline namespace internal {

/// The enclosure of a folder of the machine's, which can be held: from Hold on, `root` must name
/// the folder that it names then. If it was moved, removed or replaced, no function of the file
/// system reaches anything through `root`, because the folder there may be another store. Threads:
/// any, but Hold comes first.
class HeldFolder : public FolderEnclosure {
 public:
  /// Errors: those of FileSystem::Stat.
  virtual Status Hold() = 0;

  /// Checks that `root` still names the folder held; OK before Hold. Errors: kIoError, it does not.
  virtual Status Check() const = 0;
};

/// See FileSystem::Enclose.
std::shared_ptr<HeldFolder> EnclosePosix(const Path& root);

/// Holds an enclosure of the machine's file system. Does nothing for nullptr, that of a fake.
Status HoldFolder(const std::shared_ptr<FolderEnclosure>& enclosure);

/// Checks an enclosure as HeldFolder::Check does; nullptr: OK.
Status CheckFolder(const std::shared_ptr<FolderEnclosure>& enclosure);

/// Makes the error for a `path` that should be a regular file and is not: kCorruption below an
/// enclosed root, where a store writes nothing else; else kIoError.
Status NotRegular(const Path& path);

/// The place on which a system call acts: an open folder and a name in it, for the functions that
/// end in "at".
///
/// Below an enclosed root the folder is opened without following a link on the way, and the name is
/// a single component, which is not followed either. For any other path, the folder is the working
/// directory and the name is the path, resolved as the system does.
class Place {
 public:
  /// `operation` is a word for error messages. Errors: kNotFound, a folder on the way is missing;
  /// kCorruption, it is a link.
  static Result<Place> Find(const Path& path, std::string_view operation);

  int folder() const { return folder_.get() >= 0 ? folder_.get() : AT_FDCWD; }
  const char* name() const { return name_.c_str(); }

  /// O_NOFOLLOW below an enclosed root, else 0.
  int no_follow() const { return enclosed_ ? O_NOFOLLOW : 0; }

  /// Calls openat(2) with O_CLOEXEC, again after EINTR.
  Result<Descriptor> Open(int flags, std::string_view operation) const;

  /// Makes the Status for a call that failed here. It names a link that was in the way.
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
