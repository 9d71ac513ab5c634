#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/index/home_graph.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Divides a small graph into `parts` by recursive bisection: each time a part grows from a drawn
/// vertex, the neighbour that cuts most edges less first, until it has its share, and is refined;
/// the best of some tries is kept (greedy graph growing: Karypis and Kumar, "A fast and high
/// quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput. 1998, section
/// 3.2). `slack` is what a part may have more than its share of rows or seeds, as a factor.
std::vector<PartitionId> DivideSmallGraph(const HomeGraph& graph, std::uint32_t parts, double slack,
                                          std::uint64_t seed);

/// The loads that parts of equal shares may have: `slack` times the mean, and never so little that
/// one vertex of the largest load keeps a part from its share.
std::vector<HomeLoad> EqualCaps(const HomeGraph& graph, std::uint32_t parts, double slack);

}  // namespace rhizome::inline internal
