#include "tools/cli/sibling_binary.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "rhizome/file_system.h"

namespace rhizome {

Result<std::string> SiblingPath(const std::string& name) {
  std::error_code error;
  const Path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Fail(Status::FromErrno(error.value(), "reading /proc/self/exe"));
  return (self.parent_path() / name).string();
}

Status ExecSibling(const std::string& name, char** argv) {
  RHIZOME_ASSIGN_OR_RETURN(const std::string path, SiblingPath(name));
  ::execv(path.c_str(), argv);
  return Status::FromErrno(errno, "running " + path);
}

}  // namespace rhizome
