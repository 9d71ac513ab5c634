#include "rhizome/file_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/types.h"
#include "storage/base/escaped_text.h"
#include "storage/base/mutant.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

Path ParentOf(const Path& path) {
  const Path parent = path.parent_path();
  return parent.empty() ? Path(".") : parent;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

}  // namespace

Status ReadExactly(ReadableFile& file, std::uint64_t offset_bytes, std::span<std::byte> out) {
  while (!out.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, file.ReadAt(offset_bytes, out));
    if (got == 0) {
      return Status::Corruption(
          fmt::format("'{}' ends at offset {}, {} bytes are missing (truncated)",
                      file.path().string(), offset_bytes, out.size()));
    }
    if (RHIZOME_MUTANT("short read is taken for whole")) return {};
    out = out.subspan(std::min(got, out.size()));
    offset_bytes += got;
  }
  return {};
}

Status ReadWhole(ReadableFile& file, std::span<std::byte> room) {
  const std::uint64_t size_bytes = file.size_bytes();
  const std::uint64_t unit = file.alignment_bytes();
  if (unit <= 1) return ReadExactly(file, 0, room.first(size_bytes));
  std::uint64_t done = 0;
  while (done < size_bytes) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t got, file.ReadAt(done, room.subspan(done)));
    std::uint64_t end = done + got;
    if (end < size_bytes) end -= end % unit;  // the next read begins at a whole unit
    if (end <= done) {
      return Status::Corruption(
          fmt::format("'{}' ends at offset {}, {} bytes are missing (truncated)",
                      file.path().string(), done + got, size_bytes - done - got));
    }
    done = end;
  }
  return {};
}

Result<std::vector<std::byte>> ReadWholeFile(FileSystem& fs, const Path& path,
                                             std::uint64_t max_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const auto file, fs.OpenRead(path));
  if (file->size_bytes() > max_bytes) {
    return Fail(Status::Corruption(fmt::format("'{}' has {} bytes, at most {} are allowed",
                                               path.string(), file->size_bytes(), max_bytes)));
  }
  std::vector<std::byte> bytes(file->size_bytes());
  RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, 0, bytes));
  return bytes;
}

Status WriteWholeFile(FileSystem& fs, const Path& path, std::span<const std::byte> bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const auto file, fs.CreateFile(path));
  const Status written = file->Append(bytes);
  if (RHIZOME_MUTANT("errors of small files are ignored")) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(written);
  RHIZOME_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

Status CreateDirectories(FileSystem& fs, const Path& path) {
  if (path.filename().empty() && path.has_relative_path())  // a trailing slash
    return CreateDirectories(fs, path.parent_path());
  Status made = fs.CreateDirectory(path);
  if (made.code() == StatusCode::kNotFound && path.has_relative_path() && ParentOf(path) != path) {
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, ParentOf(path)));
    made = fs.CreateDirectory(path);
  }
  if (made.ok()) return fs.SyncDirectory(ParentOf(path));
  if (made.code() != StatusCode::kAlreadyExists) return made;
  // A symbolic link to a folder is allowed here; List follows it, and fails for anything else.
  RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs.Stat(path));
  bool is_folder = info.kind == DirectoryEntry::Kind::kDirectory;
  if (info.kind == DirectoryEntry::Kind::kOther) {
    const auto entries = fs.List(path);
    if (!entries && entries.error().code() != StatusCode::kNotFound) return entries.error();
    is_folder = entries.has_value();
  }
  if (is_folder) {
    // The folder may have been created by a process that was killed before its sync.
    const Status synced = fs.SyncDirectory(ParentOf(path));
    return synced.code() == StatusCode::kPermissionDenied ? Status::Ok() : synced;
  }
  return Status::AlreadyExists(fmt::format("'{}' exists and is not a folder", path.string()));
}

std::vector<Path> MissingFolders(FileSystem& fs, const Path& path) {
  std::vector<Path> missing;
  Path at = path.filename().empty() && path.has_relative_path() ? path.parent_path() : path;
  while (!at.empty()) {
    const auto info = fs.Stat(at);
    if (info || info.error().code() != StatusCode::kNotFound) break;
    missing.push_back(at);
    at = at.parent_path();
  }
  return missing;
}

void RemoveEmptyFolders(FileSystem& fs, std::span<const Path> folders) {
  for (const Path& folder : folders)
    if (!fs.RemoveDirectory(folder).ok()) return;
}

Status RemoveTree(FileSystem& fs, const Path& path) {
  const Result<FileInfo> info = fs.Stat(path);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  if (info->kind != DirectoryEntry::Kind::kDirectory) return fs.RemoveFile(path);
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(path));
  for (const DirectoryEntry& entry : entries)
    RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, path / entry.name));
  return fs.RemoveDirectory(path);
}

Status CheckName(std::string_view what, std::string_view name) {
  const bool fits = !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
                    name.find("..") == std::string_view::npos &&
                    std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (fits) return {};
  return Status::InvalidArgument(
      fmt::format("'{}' is not a valid name for {}: use 1 to {} characters of A-Z a-z 0-9 _ . -, "
                  "without a leading dot or two dots in a row",
                  Excerpt(name, kMaxNameBytes), what, kMaxNameBytes));
}

}  // namespace rhizome
