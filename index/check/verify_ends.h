#pragma once

#include <string>

#include "index/base/edge_ends.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/manifest.h"

namespace rhizome {
inline namespace internal {

/// Returns whether the manifest says that the edges of a type have ends of one vertex type.
bool ClaimsEnds(const GenerationInfo& info);

/// Collects the vertex types of the ends of the edges of a loaded partition.
/// Memory: 2 bytes a vertex of the partition.
EndsOfEdges EndsIn(const Adjacency& adjacency, const VertexOrder& order,
                   const GenerationInfo& info);

/// Returns what the manifest says wrongly about the ends of the first such edge type; empty if no
/// edge contradicts it.
std::string WrongEnds(const GenerationInfo& info, const EndsOfEdges& real);

}  // namespace internal
}  // namespace rhizome
