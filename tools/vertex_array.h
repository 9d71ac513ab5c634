#pragma once

#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Errors: kInvalidArgument, the array has no row for each vertex, and what to do instead.
Status CheckVertexArray(const ArrayEntry& entry);

/// Where `export` writes the ids of the rows in `rows`, one a line: F.ids.tsv beside F.npy.
inline Path IdsBeside(Path rows) { return rows.replace_extension(".ids.tsv"); }

}  // namespace rhizome
