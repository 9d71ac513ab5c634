#pragma once

#include <fcntl.h>

#include <memory>
#include <string>
#include <string_view>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/posix_file.h"

namespace rhizome::inline internal {

/// See FileSystem::Enclose.
std::shared_ptr<FolderEnclosure> EnclosePosix(const Path& root);

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

}  // namespace rhizome::inline internal
