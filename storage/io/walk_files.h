#pragma once

#include <functional>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// Returns whether an entry is a file or a folder that is not a store's (place_names.h). A link or
/// a pipe is not foreign but refused, whatever its name.
bool IsForeignEntry(const DirectoryEntry& entry);

/// Calls `visit` for every file below `folder`, with its path relative to `folder`, in no
/// particular order. Entries that are neither files nor folders are visited too. Errors: those of
/// List and the first of `visit`, which end the walk; kCorruption, folders are nested deeper than
/// 16.
Status WalkFiles(
    FileSystem& fs, const Path& folder,
    const std::function<Status(const std::string& relative, DirectoryEntry::Kind)>& visit);

}  // namespace rhizome
