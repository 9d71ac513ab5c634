#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rhizome/storage/catalog.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// Rebuilds the committed manifest, of which any number of bytes are wrong or missing, from
///   - `record`: length, generation and version;
///   - the files of the generation: paths, lengths and hashes, which are most of a manifest's
///   bytes;
///   - zarr.json of each array;
///   - `left`, the bytes that are left of it, and other sound manifests of the generation: the
///   info,
///     type names, series and aliases;
///   - the seal, which corrects one more byte.
/// The result has the committed hash; nothing is returned if none has. It needs every listed file
/// to be sound, or its entry to be still readable.
/// Memory: the manifest a few times. Time: one read of the generation. Errors: kIoError;
/// kInterrupted.
Result<std::optional<std::vector<std::byte>>> RebuildManifest(
    FileSystem& fs, const Path& generation, const StoreId& id, const CommitRecord& record,
    std::vector<std::byte> left, const JobControl& control);

}  // namespace rhizome::inline internal
