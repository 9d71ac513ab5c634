#pragma once

#include <cstdint>

#include "rhizome/index/graph.h"
#include "rhizome/index/write_batch.h"

namespace rhizome {

/// Counts the deletions of a batch that delete nothing when their turn comes: a vertex that the
/// graph does not have, or an edge of a source, type and target that has no edge. Earlier
/// operations of the batch are taken into account. Reads the lists of the edges' sources, in the
/// order in which they are stored.
/// Errors: those of LookUpNeighbors.
Result<std::uint64_t> CountAbsentDeletions(const GraphSnapshot& graph, const WriteBatch& batch);

}  // namespace rhizome
