#pragma once

#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace RHIZOME_API rhizome {

/// A store and a folder of backups contain only their own files: any other file in one counts as
/// damage, and a repair moves it away. So every function that creates something for a user (a
/// store, backups, a file, scratch files) first calls one of these checks.
///
/// Fails if `path`, with all links resolved, is inside a store or a folder of backups. `path` may
/// be anything, and need not exist. A parent folder that cannot be read is ignored.
/// Errors: kInvalidArgument, naming the store or the backups.
Status CheckOutside(FileSystem& fs, const Path& path);

/// Checks a folder that will receive files of arbitrary names: as CheckOutside, and the folder
/// itself must not be a store or a folder of backups. Errors: kInvalidArgument.
Status CheckFolderOutside(FileSystem& fs, const Path& folder);

/// Checks a folder for scratch files: as CheckFolderOutside, and if it exists, it must be a folder
/// or a link to one. Errors: kInvalidArgument.
Status CheckScratchPlace(FileSystem& fs, const Path& scratch);

/// Returns whether `path`, with all links resolved, is a store, intact or damaged.
bool IsStore(FileSystem& fs, const Path& path);

}  // namespace rhizome
