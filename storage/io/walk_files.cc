#include "storage/io/walk_files.h"

#include <fmt/format.h>

#include <cstddef>

#include "storage/io/place_names.h"

namespace rhizome {
namespace {

/// Neither stores nor folders of backups are deeper.
constexpr std::size_t kMaxDepth = 16;

Status Walk(FileSystem& fs, const Path& folder, const std::string& prefix, std::size_t depth,
            const std::function<Status(const std::string&, DirectoryEntry::Kind)>& visit) {
  if (depth > kMaxDepth)
    return Status::Corruption(fmt::format("'{}': folders too deep", folder.string()));
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(folder));
  for (const DirectoryEntry& entry : entries) {
    const std::string relative = prefix + entry.name;
    if (entry.kind == DirectoryEntry::Kind::kDirectory) {
      RHIZOME_RETURN_IF_ERROR(Walk(fs, folder / entry.name, relative + "/", depth + 1, visit));
    } else {
      RHIZOME_RETURN_IF_ERROR(visit(relative, entry.kind));
    }
  }
  return Status::Ok();
}

}  // namespace

bool IsForeignEntry(const DirectoryEntry& entry) {
  using Kind = DirectoryEntry::Kind;
  return (entry.kind == Kind::kFile && IsForeignFile(entry.name)) ||
         (entry.kind == Kind::kDirectory && IsForeignFolder(entry.name));
}

Status WalkFiles(
    FileSystem& fs, const Path& folder,
    const std::function<Status(const std::string& relative, DirectoryEntry::Kind)>& visit) {
  return Walk(fs, folder, "", 0, visit);
}

}  // namespace rhizome
