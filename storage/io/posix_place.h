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

/// What stands at `path` is no regular file, where one was asked for: kCorruption below an enclosed
/// root, as nothing else was written there; else kIoError.
Status NotRegular(const Path& path);

/// Where a system call is to act: a name, and the folder that it stands in.
///
/// Below an enclosed root the folder is opened without passing a link on the way, and the name is a
/// single one: the functions that end in "at" act on it, told not to follow it either. Any other
/// path is a name in the working directory, followed as the system does.
class Place {
 public:
  /// Errors: kNotFound, a folder on the way is missing; kCorruption, it is a link.
  static Result<Place> Find(const Path& path, std::string_view operation);

  int folder() const { return folder_.get() >= 0 ? folder_.get() : AT_FDCWD; }
  const char* name() const { return name_.c_str(); }

  /// O_NOFOLLOW below an enclosed root, else 0.
  int no_follow() const { return enclosed_ ? O_NOFOLLOW : 0; }

  /// openat(2) without EINTR, always O_CLOEXEC.
  Result<Descriptor> Open(int flags, std::string_view operation) const;

  /// A Status for a call that failed here: names a link that stood in the way.
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
