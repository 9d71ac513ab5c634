#pragma once

#include <string_view>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Creates a folder on the local disk whose path is `prefix` and six random letters. (A name that
/// is derived from the process id could clash with a folder that a killed process left behind.)
/// Errors: system errors, whose messages begin with `what`.
Result<Path> MakeUniqueFolder(const Path& prefix, std::string_view what);

}  // namespace rhizome
