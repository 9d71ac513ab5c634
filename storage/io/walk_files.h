#pragma once

#include <functional>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// Calls `visit` for every file below `folder`, with its path relative to `folder`, in no order.
/// Anything that is neither a file nor a folder is visited too.
Status WalkFiles(
    FileSystem& fs, const Path& folder,
    const std::function<Status(const std::string& relative, DirectoryEntry::Kind)>& visit);

}  // namespace rhizome
