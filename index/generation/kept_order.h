#pragma once

#include "index/base/vertex_column.h"
#include "index/generation/reorder.h"
#include "index/topology/vertex_order.h"

namespace rhizome {
inline namespace internal {

/// Returns a PDS order for the next generation that keeps old rows in their relative order, so that
/// arrays are copied from front to back. Within each (owner, type), vertices that keep their owner
/// keep their order, and the other vertices are merged in by degree. `before` need not be grouped.
VertexColumn KeepOrder(const ReorderInput& input, const VertexOrder& before);

/// Returns the share of the benefit of PDS order that an order has lost, from 0 (nothing) to 1: how
/// much further back in its (owner, type) the row of a random edge's neighbour is than in PDS
/// order, as a share of the rows there. This equals the share of hits that a static cache of the
/// first rows loses, averaged over its sizes.
double OrderDrift(const ReorderInput& input, const VertexColumn& order, const VertexColumn& sorted);

}  // namespace internal
}  // namespace rhizome
