#pragma once

#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// Makes a folder on the local disk whose path is `prefix` and six random letters: a name made of
/// the process's number may be that of a folder which a killed process left behind. Errors: those
/// of the system, which begin with `what`.
Result<Path> MakeUniqueFolder(const Path& prefix, std::string_view what);

}  // namespace rhizome
