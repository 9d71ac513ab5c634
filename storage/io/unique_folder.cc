#include "storage/io/unique_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>

namespace rhizome {

Result<Path> MakeUniqueFolder(const Path& prefix, std::string_view what) {
  std::string name = prefix.string() + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return Fail(Status::FromErrno(errno, std::string(what)));
  return Path(name);
}

}  // namespace rhizome
