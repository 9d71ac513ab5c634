#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "rhizome/file_system.h"

namespace rhizome {

/// Describes the machine that a command runs on: processor, kernel, and the file system and device
/// of `path`.
nlohmann::ordered_json DescribeMachine(const Path& path);

/// Returns whether `filesystem`, a name as DescribeMachine reports it, is a network file system, on
/// which a file lock may be visible only on the machine that took it. Some network file systems
/// forward locks if mounted accordingly (NFS: flock(2) and nfs(5), local_lock).
bool LocksMayBeLocal(std::string_view filesystem);

/// Processor time used so far by this process (or by the calling thread), in seconds.
double ProcessCpuSeconds();
double ThreadCpuSeconds();

}  // namespace rhizome
