#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/adjacency.h"

namespace rhizome::inline internal {

/// For each edge id of a partition the place of that edge in `edges`: the order in which
/// Adjacency::Write numbers them, (list's vertex, type, neighbour, weight), edges that are equal in
/// all of these in the order of the input. O(edges log edges); 16 bytes an edge.
std::vector<std::uint64_t> OrderOfEdges(const EdgesOfPartition& edges, const VertexOrder& order,
                                        const PartitionContext& context);

}  // namespace rhizome::inline internal
