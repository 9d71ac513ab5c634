#pragma once

#include <cstdint>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/topology/vertex_order.h"
#include "rhizome/manifest.h"

namespace rhizome {
inline namespace internal {

/// Returns the vertex types of the ends of edges, by edge type: the generation's types, widened by
/// the edges that the delta adds, even if it deletes them later. Empty if the graph has one vertex
/// type, or if the generation has several and was written by a build that did not store the ends.
/// Takes time for each edge of the delta.
std::vector<EdgeEnds> EdgeEndsOf(const GraphParts& parts, const Delta& delta);

/// Returns the type of a vertex of the generation, whose order is `order`, or of one that the delta
/// adds.
TypeId TypeOfVertex(const VertexOrder& order, const Delta& delta, VertexId vertex);

/// Returns the number of vertices that are not deleted, by vertex type.
std::vector<std::uint64_t> VerticesByType(const GraphParts& parts, const Delta& delta);

}  // namespace internal
}  // namespace rhizome
