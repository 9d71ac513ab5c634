#pragma once

#include <nlohmann/json.hpp>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Reads a YAML file of at most 16 MiB and 32 levels as JSON values. Plain scalars that are decimal
/// integers, true, false, null, ~ or empty become the corresponding values, all others strings;
/// keys are strings. Aliases (which could make a small file huge) and multiple documents are
/// refused.
/// Errors: kInvalidArgument, naming file and line; kNotFound; kIoError.
Result<nlohmann::json> ReadYaml(FileSystem& fs, const Path& path);

}  // namespace rhizome
