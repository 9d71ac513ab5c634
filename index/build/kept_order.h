#pragma once

#include <vector>

#include "rhizome/index/reorder.h"
#include "rhizome/index/vertex_order.h"

namespace rhizome::inline internal {

/// An order kPds of the next generation in which old rows follow one another as they did, so that
/// arrays are copied from front to back: within each (owner, type) the vertices that were there
/// before in their old order, and the others among them by their degree. `before` need not be
/// grouped.
std::vector<VertexId> KeepOrder(const ReorderInput& input, const VertexOrder& before);

/// How much of what PDS order is for an order has lost: how much further back in its (owner, type)
/// the row of a random edge's neighbour lies than it would in PDS order, as a share of the rows
/// there. That is the share of hits that a static cache of first rows loses, in the mean over its
/// sizes. From 0 (nothing) to 1.
double OrderDrift(const ReorderInput& input, const std::vector<VertexId>& order,
                  const std::vector<VertexId>& sorted);

}  // namespace rhizome::inline internal
