#pragma once

#include <cstdint>
#include <vector>

#include "index/topology/adjacency.h"

namespace rhizome {
inline namespace internal {

/// Returns, for each edge id of a partition, the index of that edge in `edges`. Adjacency::Write
/// numbers edges by (vertex of the list, type, neighbour, weight); edges that are equal in all of
/// these keep the order of the input. O(edges log edges) time; 16 bytes an edge.
std::vector<std::uint64_t> OrderOfEdges(const EdgesOfPartition& edges, const VertexOrder& order,
                                        const PartitionContext& context);

}  // namespace internal
}  // namespace rhizome
