#pragma once

#include "rhizome/graph_types.h"
#include "rhizome/write_batch.h"

namespace rhizome {

/// Returns the schema of a new store that a batch fits: integer ids if all of its ids are integers,
/// and its types in the order in which they occur, after the default type if an edge or a vertex
/// has none. `weighted` says whether its edges have weights.
GraphSchema SchemaOfBatch(const WriteBatch& batch, bool weighted);

/// Describes such a schema in a few words: "integer ids, weights, edge types cites, likes".
std::string DescribeSchema(const GraphSchema& schema);

}  // namespace rhizome
