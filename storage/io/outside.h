#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// A store and a folder of backups hold nothing but what is theirs: whatever else lies in one is
/// damage to it, and a repair moves it away. So nothing that a user asks for (a store, backups, a
/// file, scratch files) is put there: each of these asks here before it makes anything.
///
/// Does `path`, with all links on the way to it resolved, lie in a store or in a folder of backups?
/// What `path` itself is does not matter, nor whether it is there. A folder above it that cannot be
/// looked at says nothing. Errors: kInvalidArgument, naming the store or the backups.
Status CheckOutside(FileSystem& fs, const Path& path);

/// The same of a folder into which files of any name go: it may not be a store, or a folder of
/// backups, either. Errors: kInvalidArgument.
Status CheckFolderOutside(FileSystem& fs, const Path& folder);

/// The same of a folder for scratch files, which is a folder, or a link to one, where it is there.
/// Errors: kInvalidArgument.
Status CheckScratchPlace(FileSystem& fs, const Path& scratch);

}  // namespace rhizome
