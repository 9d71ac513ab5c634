#pragma once

#include "rhizome/storage/chunk_array.h"

namespace rhizome::inline internal {

/// Are the files of the array's chunks as long as the manifest says? For callers that take memory
/// for all rows before they read the first: a manifest may claim any number of them. Errors:
/// kCorruption, naming the file; kIoError.
Status CheckChunkLengths(const ChunkArray& array);

}  // namespace rhizome::inline internal
