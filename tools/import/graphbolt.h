#pragma once

#include "tools/import/dataset.h"

namespace rhizome {

/// Reads a data set in the on-disk format of GraphBolt (DGL): `folder` holds metadata.yaml and the
/// files that it names (graphbolt.OnDiskDataset; not the `preprocessed/` folder that GraphBolt
/// derives from them).
///
/// The following parts are read:
/// - graph.nodes and graph.edges (csv: lines src,dst without a header; numpy: integers [2, m]);
/// - feature_data and graph.feature_data of nodes and edges (numpy of one or two dimensions;
///   float64 becomes float32). Features of edges become edge attributes, and `weight` the weight of
///   the edges (AddEdgeArray);
/// - the training, validation and test sets of the first task whose seeds are vertices.
///
/// Ids are 0..n-1, ordered by type name, as in the graph that GraphBolt samples. Arrays: the
/// features under their names, `split`, and `label` int64 (-1: none). An edge type `a:relation:b`
/// becomes `relation`, or `a__relation__b` if two types have the same relation.
/// Memory: Dataset::held_bytes and a few blocks, less than `memory_bytes` (0: no limit).
/// Errors: kNotFound; kInvalidArgument, naming the file or the entry of metadata.yaml;
/// kOutOfMemory, the vertices alone exceed the limit.
Result<Dataset> ReadGraphBolt(FileSystem& fs, const Path& folder, std::uint64_t memory_bytes = 0);

}  // namespace rhizome
