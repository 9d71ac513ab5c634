#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// A store and a folder of backups hold nothing but their own files: any other file in one is
/// damage, and a repair moves it away. So every function that makes something for a user (a store,
/// backups, a file, scratch files) calls one of these checks first.
///
/// Refuses a `path` that, with all links on the way to it resolved, lies in a store or in a folder
/// of backups. It does not matter what `path` is, nor whether it exists. A folder above it that
/// cannot be read is passed over. Errors: kInvalidArgument, naming the store or the backups.
Status CheckOutside(FileSystem& fs, const Path& path);

/// Checks a folder into which files of any name go: as CheckOutside, and it may not itself be a
/// store or a folder of backups either. Errors: kInvalidArgument.
Status CheckFolderOutside(FileSystem& fs, const Path& folder);

/// Checks a folder for scratch files: as CheckFolderOutside, and if it exists it must be a folder
/// or a link to one. Errors: kInvalidArgument.
Status CheckScratchPlace(FileSystem& fs, const Path& scratch);

}  // namespace rhizome
