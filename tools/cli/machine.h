#pragma once

#include <nlohmann/json.hpp>

#include "rhizome/storage/file_system.h"

namespace rhizome {

/// Describes the machine that a command ran on: processor, kernel, and the file system and device
/// under `path`.
nlohmann::ordered_json DescribeMachine(const Path& path);

/// Processor time that this process, or the calling thread, has used, in seconds.
double ProcessCpuSeconds();
double ThreadCpuSeconds();

}  // namespace rhizome
