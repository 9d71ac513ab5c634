#pragma once

#include <nlohmann/json.hpp>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {

/// Reads a YAML file of at most 16 MiB and 32 nesting levels as JSON values. Plain scalars that are
/// decimal integers, true, false, null, ~ or empty become the corresponding JSON values; all others
/// become strings. Keys are strings. Aliases (with which a small file could expand to a huge value)
/// and multiple documents are rejected.
/// Errors: kInvalidArgument, naming file and line; kNotFound; kIoError.
Result<nlohmann::json> ReadYaml(FileSystem& fs, const Path& path);

}  // namespace rhizome
