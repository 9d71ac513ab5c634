#include "tools/cli/scratch_folder.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "storage/io/outside.h"
#include "storage/io/unique_folder.h"

namespace rhizome {

Result<ScratchFolder> ScratchFolder::Create(const Path& parent) {
  RHIZOME_RETURN_IF_ERROR(CheckFolderOutside(FileSystem::Posix(), parent));
  RHIZOME_ASSIGN_OR_RETURN(
      Path path, MakeUniqueFolder(parent / "rhizome-", "create a folder for scratch files in '" +
                                                           parent.string() + "' (see --dir)"));
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;  // ignored: the name of a folder that remains shows its origin
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rhizome
