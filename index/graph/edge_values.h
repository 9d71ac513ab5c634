#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// Returns what ReadEdgeRows reads of each edge of a graph: its attributes
/// (Graph::edge_attributes); "weight", a float32, if the graph has weights; and "type", an int64,
/// which is an index of edge_types(). An attribute that has one of these names stands for itself.
std::vector<EdgeAttributeInfo> EdgeColumns(const Graph& graph);

/// Returns the one of these that has a name. Errors: kNotFound, listing the names that there are.
Result<EdgeAttributeInfo> FindEdgeColumn(const Graph& graph, std::string_view name);

/// Reads a column of edges by their numbers (EdgeNumbering, bulk_ids.h), such as those of the edges
/// that a sampler drew; they may repeat. `out` has the shape [edges.size(), values of the column].
/// Numbers are of one generation, so that after a compaction they mean other edges: take one
/// Snapshot for this and for the sampler. An edge of the generation that was deleted since still
/// has its values.
/// Weights and types are in memory. Values of attributes are read from the store's files, all that
/// one call asks for of a partition in one deep batch, with the memory that FileRows documents; in
/// an array of layout kChunk each chunk that holds one of them is decoded once a call. Those of
/// edges written since the generation are in memory.
/// Errors: kNotFound, no such column; kInvalidArgument, a number that no edge has (named), an edge
/// written since the generation and deleted again, a wrong size of `out`, values from files in a
/// forked child, or a weight or type of a partition that is not loaded; kCorruption; kIoError.
/// After an error `out` is unspecified. Threads: any.
Status ReadEdgeRows(const Graph& graph, std::string_view name, std::span<const std::int64_t> edges,
                    std::span<std::byte> out);

}  // namespace rhizome
