#pragma once

#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Are the rows of an array those of edges: an edge attribute, such as time.p0000?
bool IsEdgeArray(const ArrayEntry& entry);

/// Errors: kInvalidArgument, the array has no row for each vertex, and what to do instead.
Status CheckVertexArray(const ArrayEntry& entry);

}  // namespace rhizome
