#pragma once

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// Copies the first `size_bytes` of a file to the new file `to`, synced; the folder is the caller's
/// to sync. Errors: kCorruption, `from` is shorter.
Status CopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes);

/// Gives a finished and synced file of `size_bytes` the second name `to`, or copies it where the
/// file system has no links. Errors: kCorruption, `from` is missing, or of another length.
Status LinkOrCopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes);

}  // namespace rhizome::inline internal
