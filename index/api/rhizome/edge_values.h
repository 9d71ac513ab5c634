#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// Returns the columns that ReadEdgeRows can read: the attributes of the edges
/// (Graph::edge_attributes); "weight", a float32, if the graph has weights; and "type", an int64,
/// which is an index into edge_types(). An attribute with one of these names takes precedence over
/// the built-in column.
std::vector<EdgeAttributeInfo> EdgeColumns(const Graph& graph);

/// Returns the column with a name.
/// Errors: kNotFound, listing the existing names.
Result<EdgeAttributeInfo> FindEdgeColumn(const Graph& graph, std::string_view name);

/// Reads a column of edges by their numbers (EdgeNumbering, bulk_ids.h), for example for the edges
/// that a sampler drew. Numbers may repeat. `out` has the shape [edges.size(), values of the
/// column]. Numbers are valid for one generation; after a compaction they denote other edges, so
/// use one Snapshot for this function and for the sampler. An edge of the generation that was
/// deleted later still has its values.
/// Errors: kNotFound, no such column; kInvalidArgument, a number that no edge has (naming it), an
/// edge written since the generation and deleted again, a wrong size of `out`, values from files in
/// a forked child, or a weight or type of a partition that is not loaded; kCorruption; kIoError.
/// After an error `out` is unspecified.
/// Threads: any.
Status ReadEdgeRows(const Graph& graph, std::string_view name, std::span<const std::int64_t> edges,
                    std::span<std::byte> out);

}  // namespace rhizome
