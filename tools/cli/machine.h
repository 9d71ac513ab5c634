#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "rhizome/storage/file_system.h"

namespace rhizome {

/// Describes the machine that a command ran on: processor, kernel, and the file system and device
/// under `path`.
nlohmann::ordered_json DescribeMachine(const Path& path);

/// Tells whether a lock of a file may be known to the machine alone that took it: on file systems
/// over a network, by the names that DescribeMachine gives. Some pass locks on, if they are mounted
/// for it (NFS: flock(2) and nfs(5), local_lock).
bool LocksMayBeLocal(std::string_view filesystem);

/// Processor time that this process, or the calling thread, has used, in seconds.
double ProcessCpuSeconds();
double ThreadCpuSeconds();

}  // namespace rhizome
