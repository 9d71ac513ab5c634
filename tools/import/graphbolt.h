#pragma once

#include "dataset.h"

namespace rhizome {

/// Reads a data set in the form in which GraphBolt (DGL) reads it from disk: `folder` holds
/// metadata.yaml and the files that it names (graphbolt.OnDiskDataset; not the `preprocessed/`
/// folder that GraphBolt makes of them).
///
/// It reads graph.nodes and graph.edges (csv: lines src,dst without a header; numpy: integers [2,
/// m]); feature_data and graph.feature_data of nodes and of edges (numpy of one or two dimensions;
/// float64 becomes float32; those of edges become edge attributes, and `weight` their weight:
/// AddEdgeArray); and the train, validation and test sets of the first task whose seeds are
/// vertices.
///
/// Ids are 0..n-1, type after type in the order of their names, which are GraphBolt's own ids in
/// the graph that it samples. Arrays: the features by their names, `split`, and `label` int64 (-1:
/// none). An edge type `a:relation:b` becomes `relation`, or `a___relation___b` if two types have
/// the same relation.
/// Memory: Dataset::held_bytes and a few blocks, less than `memory_bytes` (0: no limit).
/// Errors: kNotFound; kInvalidArgument, naming the file, or the entry of metadata.yaml;
/// kOutOfMemory, its vertices alone are too many.
Result<Dataset> ReadGraphBolt(FileSystem& fs, const Path& folder, std::uint64_t memory_bytes = 0);

}  // namespace rhizome
