#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/class_products.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Numbers of classes for which a kind has weights.
struct TypeCounts {
  std::size_t vertex_types = 1;
  std::size_t relations = 1;
};

/// The rows and groups of a layer's graph by class, for kinds with weights for each vertex type.
/// The lists have other numbers than in the graph:
///
/// - `edges`: the list of each group; a neighbour is a position in `sources.rows`.
/// - `groups_of_targets`: the groups of each target, without neighbours.
struct TypedGraph {
  RowsByClass sources;       ///< by vertex type
  RowsByClass targets;       ///< by vertex type
  RowsByClass groups;        ///< by relation
  ProductSource of_targets;  ///< the target of each group
  AggregateLists edges;
  CsrView groups_of_targets;

  // The arrays of the lists.
  std::vector<std::uint32_t> places = {};
  std::vector<std::uint32_t> target_of_group = {};
};

/// Sorts a graph with groups. `types`: vertex types of its sources at least, or empty: all have
/// type 0. Ownership: the result borrows the lists of groups.
std::shared_ptr<const TypedGraph> MakeTypedGraph(const GroupedLists& groups, const CsrView& lists,
                                                 std::size_t sources, std::span<const TypeId> types,
                                                 const TypeCounts& counts);

}  // namespace internal
}  // namespace rhizome
