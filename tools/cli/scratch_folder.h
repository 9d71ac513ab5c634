#pragma once

#include <utility>

#include "rhizome/file_system.h"

namespace rhizome {

/// A temporary folder. The destructor removes it with all its contents.
class ScratchFolder {
 public:
  /// Creates `parent`/rhizome-<random>. Errors: kNotFound, kPermissionDenied, ...
  static Result<ScratchFolder> Create(const Path& parent);
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  const Path& path() const { return path_; }

 private:
  explicit ScratchFolder(Path path) : path_(std::move(path)) {}
  Path path_;
};

}  // namespace rhizome
