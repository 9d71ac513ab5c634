#pragma once

#include <string>

#include "rhizome/status.h"

namespace rhizome {

/// Returns the path of the binary `name` in the folder of the running binary. Errors: kIoError,
/// /proc is not mounted.
Result<std::string> SiblingPath(const std::string& name);

/// Replaces this process by the binary `name` of the same folder, run with `argv`. Returns only on
/// failure. Errors: kNotFound, there is no such binary; kIoError.
Status ExecSibling(const std::string& name, char** argv);

}  // namespace rhizome
