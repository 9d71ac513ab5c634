#include "storage/io/outside.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <system_error>

#include "storage/base/mutant.h"
#include "storage/io/files.h"
#include "storage/io/place_names.h"

namespace rhizome {
namespace {

using Kind = DirectoryEntry::Kind;

/// Returns the absolute path; links and dots are resolved in the part that exists.
Path Resolved(const Path& path) {
  std::error_code error;
  const Path absolute = std::filesystem::absolute(path, error);
  if (error) return path;
  Path resolved = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute.lexically_normal() : resolved;
}

bool HasFolders(FileSystem& fs, const Path& folder, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto info = fs.Stat(folder / name);
    if (!info || info->kind != Kind::kDirectory) return false;
  }
  return true;
}

bool BeginsWith(FileSystem& fs, const Path& path, std::string_view head) {
  constexpr std::uint64_t kMaxBytes = 4096;  // FORMAT and BACKUP are much shorter
  const auto info = fs.Stat(path);
  if (!info || info->kind != Kind::kFile || info->size_bytes > kMaxBytes) return false;
  const auto bytes = ReadWholeFile(fs, path, kMaxBytes);
  return bytes && std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                      .starts_with(head);
}

// A damaged store counts as a store: a repair would move away all other files in it.
bool HoldsStore(FileSystem& fs, const Path& folder) {
  return BeginsWith(fs, folder / kFormatName, "rhizome store") ||
         HasFolders(fs, folder, {kCatalogName, kGenerationsName});
}

bool HoldsBackups(FileSystem& fs, const Path& folder) {
  return BeginsWith(fs, folder / kBackupName, "rhizome backup") ||
         HasFolders(fs, folder, {kBackupFilesName, kBackupDeltasName, kBackupRecordsName});
}

/// Fails if `folder` or one of its parents is a store or a folder of backups. `path` is the user's
/// name for it, used in the message.
Status Check(FileSystem& fs, const Path& folder, const Path& path) {
  if (RHIZOME_MUTANT("outputs go into stores")) return Status::Ok();
  const bool store = HoldsStore(fs, folder);
  if (store || HoldsBackups(fs, folder))
    return Status::InvalidArgument(fmt::format(
        "'{}' is in '{}', a {}, where only its own files are allowed; choose a path elsewhere",
        path.string(), folder.string(), store ? "store" : "folder of backups"));
  const Path parent = folder.parent_path();
  return parent == folder ? Status::Ok() : Check(fs, parent, path);
}

}  // namespace

bool IsStore(FileSystem& fs, const Path& path) { return HoldsStore(fs, Resolved(path)); }

Status CheckOutside(FileSystem& fs, const Path& path) {
  return Check(fs, Resolved(path).parent_path(), path);
}

Status CheckFolderOutside(FileSystem& fs, const Path& folder) {
  return Check(fs, Resolved(folder), folder);
}

Status CheckScratchPlace(FileSystem& fs, const Path& scratch) {
  RHIZOME_RETURN_IF_ERROR(CheckFolderOutside(fs, scratch));
  const auto info = fs.Stat(scratch);
  if (!info || info->kind == Kind::kDirectory) return Status::Ok();
  const auto behind = fs.Stat(scratch / ".");  // a link to a folder is allowed
  if (behind && behind->kind == Kind::kDirectory) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "scratch '{}' is not a folder; give an existing folder, or a path where it can be created",
      scratch.string()));
}

}  // namespace rhizome
