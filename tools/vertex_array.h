#pragma once

#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Errors: kInvalidArgument, the array has no row for each vertex, and what to do instead.
Status CheckVertexArray(const ArrayEntry& entry);

}  // namespace rhizome
