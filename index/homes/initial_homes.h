#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/homes/home_graph.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Divides a small graph into `parts` by recursive bisection. In each bisection a part grows from a
/// random vertex, adding the neighbour that reduces the cut most, until the part has its share;
/// then it is refined. The best of several tries is kept (greedy graph growing: Karypis and Kumar,
/// "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
/// Comput. 1998, section 3.2). `slack` is the factor by which a part may exceed its share of rows
/// or seeds.
std::vector<PartitionId> DivideSmallGraph(const HomeGraph& graph, std::uint32_t parts, double slack,
                                          std::uint64_t seed);

/// Returns the caps of parts with equal shares: `slack` times the mean, and enough for the vertex
/// with the largest load not to keep a part from its share.
std::vector<HomeLoad> EqualCaps(const HomeGraph& graph, std::uint32_t parts, double slack);

}  // namespace internal
}  // namespace rhizome
