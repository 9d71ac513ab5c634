#pragma once

#include <string>

#include "tools/import/dataset.h"

namespace rhizome {

/// Reads a node-property data set of the Open Graph Benchmark in the layout of its `raw/` folder,
/// as read by read_csv_graph_raw and read_csv_heterograph_raw in ogb's read_graph_raw.py. `folder`
/// holds `raw/` and `split/`, or is `raw/` itself with `split/` next to it.
///
/// With one vertex type the files are edge.csv.gz, num-node-list.csv.gz, num-edge-list.csv.gz,
/// node-feat.csv.gz, node-label.csv.gz and further node_*.csv.gz. With several types they are
/// triplet-type-list.csv.gz, num-node-dict.csv.gz, relations/<a>___<relation>___<b>/,
/// node-feat/<type>/ and node-label/<type>/. Splits are
/// split/<name>/[<type>/]{train,valid,test}.csv.gz; `split` selects the name if there are several.
///
/// Ids are 0..n-1, ordered by type name, as OGB's readers do. Arrays: `feat` float32, `label` int64
/// (-1: none), `split`, and each further file under its own name, int64 if its first line has only
/// integers, otherwise float32. Edge attributes: `edge_feat` float32 from edge-feat.csv.gz, and
/// each further edge_*.csv.gz with a dtype chosen likewise (AddEdgeArray). An edge type is named by
/// its relation, or by `a__relation__b` if two triplets have the same relation. Inverse edges are
/// not added; if OGB adds them for the data set (add_inverse_edge), ingest with `undirected`.
/// Memory: Dataset::held_bytes and a few blocks, less than `memory_bytes` (0: no limit).
/// Errors: kNotFound; kInvalidArgument, naming the file: missing, malformed, or not a single graph;
/// kOutOfMemory, the vertices alone exceed the limit.
Result<Dataset> ReadOgb(FileSystem& fs, const Path& folder, const std::string& split,
                        std::uint64_t memory_bytes = 0);

}  // namespace rhizome
