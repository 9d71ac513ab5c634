#pragma once

#include <string>

#include "rhizome/storage/result.h"

namespace rhizome {

/// The path of binary `name` in this binary's folder. Errors: kIoError, /proc is not there.
Result<std::string> SiblingPath(const std::string& name);

/// Runs the sibling `name` with `argv` in place of this program. Returns only where that fails.
/// Errors: kNotFound, there is no such binary; kIoError.
Status BecomeSibling(const std::string& name, char** argv);

}  // namespace rhizome
