#pragma once

#include <span>
#include <vector>

#include "index/topology/type_rows.h"
#include "rhizome/manifest.h"
#include "storage/maintenance/repair_store.h"

namespace rhizome {
inline namespace internal {

/// Compares the files of a bound array, or of its sidecar, with the rows of its type: exactly the
/// chunks with such a row are stored. `files`: the files of the manifest.
std::vector<ChunkFault> WrongChunksOf(const ArrayEntry& entry, const TypeRows& of_type,
                                      std::span<const FileEntry> files);

}  // namespace internal
}  // namespace rhizome
