#pragma once

#include "rhizome/chunk_array.h"

namespace rhizome {
inline namespace internal {

/// Checks that the files of the array's chunks have the lengths stated in the manifest. Needed by
/// callers that allocate memory for all rows before they read the first, as a manifest may claim
/// any number of rows. Errors: kCorruption, naming the file; kIoError.
Status CheckChunkLengths(const ChunkArray& array);

}  // namespace internal
}  // namespace rhizome
