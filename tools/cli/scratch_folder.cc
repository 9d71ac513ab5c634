#include "scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "rhizome/storage/outside.h"

namespace rhizome {

Result<ScratchFolder> ScratchFolder::Create(const Path& parent) {
  RHIZOME_RETURN_IF_ERROR(CheckFolderOutside(FileSystem::Posix(), parent));
  std::string name = (parent / "rhizome-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Fail(Status::FromErrno(
        errno, "create a folder for scratch files in '" + parent.string() + "' (see --dir)"));
  }
  return ScratchFolder(Path(name));
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;  // a folder that stays behind shows by its name what it was
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rhizome
