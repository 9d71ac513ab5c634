#pragma once

#include "rhizome/file_system.h"
#include "rhizome/manifest.h"

namespace rhizome {
inline namespace internal {

/// Copies the first `size_bytes` bytes of a file to the new file `to`, and syncs it. The caller
/// must sync the folder. Errors: kCorruption, `from` is shorter; kAlreadyExists.
Status CopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes);

/// Creates the second name `to` (a hard link) for a finished and synced file of `size_bytes`, or
/// copies the file if the file system has no links. Errors: kCorruption, `from` is missing or has
/// another length; kAlreadyExists.
Status LinkOrCopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes);

}  // namespace internal
}  // namespace rhizome
