#pragma once

#include <string>

#include "dataset.h"

namespace rhizome {

/// A node-property data set of the Open Graph Benchmark, as its `raw/` folder has it (the layout of
/// read_csv_graph_raw and read_csv_heterograph_raw in ogb's read_graph_raw.py). `folder` holds
/// `raw/` and `split/`, or is `raw/` itself with `split/` beside it.
///
/// One type: edge.csv.gz, num-node-list.csv.gz, num-edge-list.csv.gz, node-feat.csv.gz,
/// node-label.csv.gz, further node_*.csv.gz. Several types: triplet-type-list.csv.gz,
/// num-node-dict.csv.gz, relations/<a>___<relation>___<b>/, node-feat/<type>/, node-label/<type>/.
/// Splits: split/<name>/[<type>/]{train,valid,test}.csv.gz; `split` says which name, if there are
/// several.
///
/// Ids are 0..n-1, type after type in the order of their names, as OGB's readers sort them. Arrays:
/// `feat` float32, `label` int64 (-1: none), `split`, and each further file by its name, int64 if
/// its first line has only integers, else float32. Edge attributes: `edge_feat` float32 of
/// edge-feat.csv.gz, and each further edge_*.csv.gz as above (AddEdgeArray). An edge type is named
/// by its relation, or by all of `a___relation___b` where two triplets have the same. Inverse edges
/// are not added: ingest with `undirected`, where OGB does (add_inverse_edge).
/// Holds Dataset::held_bytes and a few blocks, less than `memory_bytes` (0: no limit).
/// Errors: kNotFound, kInvalidArgument naming the file: missing, malformed, not one single graph;
/// kOutOfMemory, its vertices alone are too many.
Result<Dataset> ReadOgb(FileSystem& fs, const Path& folder, const std::string& split,
                        std::uint64_t memory_bytes = 0);

}  // namespace rhizome
