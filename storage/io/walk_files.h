#pragma once

#include <functional>
#include <string>

#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace RHIZOME_API rhizome {

/// Returns whether an entry is a file or folder that does not belong to a store (place_names.h).
/// Links and pipes are never foreign: they are refused regardless of their names.
bool IsForeignEntry(const DirectoryEntry& entry);

/// Calls `visit` for every file below `folder`, with its path relative to `folder`, in unspecified
/// order. Entries that are neither files nor folders are visited too. Errors: errors of List; the
/// first error of `visit`, which ends the walk; kCorruption, folders are nested deeper than 16.
Status WalkFiles(
    FileSystem& fs, const Path& folder,
    const std::function<Status(const std::string& relative, DirectoryEntry::Kind)>& visit);

}  // namespace rhizome
