#pragma once

#include "rhizome/storage/chunk_array.h"

namespace rhizome::inline internal {

/// Checks that the files of the array's chunks are as long as the manifest says. Callers that
/// allocate memory for all rows before they read the first need it, as a manifest may claim any
/// number of rows. Errors: kCorruption, naming the file; kIoError.
Status CheckChunkLengths(const ChunkArray& array);

}  // namespace rhizome::inline internal
