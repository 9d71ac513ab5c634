#pragma once

#include <cstdint>

#include "rhizome/graph.h"
#include "rhizome/write_batch.h"

namespace rhizome {

/// Counts the deletions of a batch that have no effect: deletions of a vertex that the graph does
/// not have, or of an edge for whose source, type and target no edge exists. Earlier operations of
/// the batch are taken into account. Reads the neighbour lists of the edges' sources, in storage
/// order.
/// Errors: as LookUpNeighbors.
Result<std::uint64_t> CountAbsentDeletions(const GraphSnapshot& graph, const WriteBatch& batch);

}  // namespace rhizome
