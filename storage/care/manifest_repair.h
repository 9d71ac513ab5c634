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

/// The committed manifest, of which any number of bytes are wrong or missing, from
///   - `record`: length, generation and version;
///   - the files of the generation: paths, lengths and hashes, which are most of a manifest's
///   bytes;
///   - zarr.json of each array;
///   - `left`, the bytes that are there (of record.manifest_bytes; zeros where there are none), and
///     other sound manifests of the generation: what the graph is, type names, series and aliases;
///   - the seal, which tells one more byte.
/// Nothing if they do not tell: what is returned has the hash that was committed. That needs every
/// file that it lists, sound or, where not, with its entry still readable.
/// Memory: the manifest a few times. Time: one read of the generation. Errors: kIoError;
/// kInterrupted.
Result<std::optional<std::vector<std::byte>>> RebuildManifest(
    FileSystem& fs, const Path& generation, const StoreId& id, const CommitRecord& record,
    std::vector<std::byte> left, const JobControl& control);

}  // namespace rhizome::inline internal
