#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "rhizome/file_system.h"
#include "storage/io/files.h"
#include "storage/io/outside.h"
#include "storage/io/posix_file.h"
#include "storage/io/posix_place.h"

namespace rhizome {
namespace {

/// Returns the file to replace: `path`, or the file that it links to. Only regular files are
/// allowed, because replacing a device such as /dev/null by a file would break the machine.
Result<Path> Target(const Path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return path;
  if (type == std::filesystem::file_type::none)
    return Fail(SystemError(error.value(), "stat", path));
  if (type != std::filesystem::file_type::regular) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is not a regular file, so it cannot be replaced; choose another path",
                    path.string())));
  }
  const Path real = std::filesystem::canonical(path, error);
  if (error) return Fail(SystemError(error.value(), "resolve", path));
  return real;
}

}  // namespace

Result<OutputFile> OutputFile::Create(const Path& path, Place place) {
  static std::atomic<unsigned> counter{0};
  RHIZOME_ASSIGN_OR_RETURN(Path target, Target(path));
  target = AbsolutePath(FileSystem::Posix(), target);
  if (target.filename().empty())
    return Fail(Status::InvalidArgument(fmt::format("'{}' has no file name", path.string())));
  if (place == Place::kOutside) RHIZOME_RETURN_IF_ERROR(CheckOutside(FileSystem::Posix(), target));
  // The name is unique to the process and file, so that two runs never write to the same temporary
  // file.
  Path temporary = target.parent_path() /
                   fmt::format(".{}.{}-{}.tmp", target.filename().string(), getpid(), counter++);
  auto file = FileSystem::Posix().CreateFile(temporary);
  if (file) return OutputFile(std::move(target), std::move(temporary), *std::move(file));
  if (file.error().code() != StatusCode::kNotFound) return Fail(file.error());
  return Fail(
      Status::NotFound(fmt::format("the folder '{}' does not exist, so '{}' cannot be written",
                                   path.parent_path().string(), path.string())));
}

OutputFile::OutputFile(Path path, Path temporary, std::unique_ptr<WritableFile> file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}

OutputFile::OutputFile(OutputFile&&) noexcept = default;

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;  // committed, or moved from
  static_cast<void>(file_->Close().ok());
  static_cast<void>(FileSystem::Posix().RemoveFile(temporary_).ok());
}

Status OutputFile::Append(std::span<const std::byte> bytes) {
  if (file_ == nullptr)
    return Status::InvalidArgument(
        fmt::format("'{}' is being written by another job", path_.string()));
  return file_->Append(bytes);
}

Status OutputFile::Commit() {
  if (file_ == nullptr)
    return Status::InvalidArgument(
        fmt::format("'{}' is being written by another job", path_.string()));
  RHIZOME_RETURN_IF_ERROR(file_->Sync());
  RHIZOME_RETURN_IF_ERROR(file_->Close());
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return SystemError(errno, "move the finished file to", path_);
  file_.reset();
  return FileSystem::Posix().SyncDirectory(path_.parent_path());
}

}  // namespace rhizome
