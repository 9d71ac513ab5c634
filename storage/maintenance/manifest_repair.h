#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/catalog/catalog.h"

namespace rhizome {
inline namespace internal {

/// Rebuilds the committed manifest, in which any number of bytes may be wrong or missing, from
///   - `record`: length, generation and version;
///   - the files of the generation: paths, lengths and hashes, which make up most of a manifest;
///   - zarr.json of each array;
///   - `left`, the remaining bytes of the manifest, and other intact manifests of the generation:
///     the info, type names, series and aliases;
///   - the seal, which corrects one more byte.
/// The result has the committed hash; nullopt if no candidate has it. Every listed file must be
/// intact, or its entry must still be readable.
/// Memory: a few times the size of the manifest. Time: one read of the generation. Errors:
/// kIoError; kInterrupted.
Result<std::optional<std::vector<std::byte>>> RebuildManifest(
    FileSystem& fs, const Path& generation, const StoreId& id, const CommitRecord& record,
    std::vector<std::byte> left, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
