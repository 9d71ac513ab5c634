#pragma once

#include <cstdint>

#include "rhizome/index/graph.h"
#include "rhizome/index/write_batch.h"

namespace rhizome {

/// How many deletions of a batch name nothing that is there when their turn comes: a vertex that
/// the graph does not have, or no edge of that source, type and target. What the batch itself does
/// before them counts. Reads the lists of the edges' sources, in the order in which they stand.
/// Errors: those of LookUpNeighbors.
Result<std::uint64_t> CountAbsentDeletions(const GraphSnapshot& graph, const WriteBatch& batch);

}  // namespace rhizome
