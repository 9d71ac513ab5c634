#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/homes/home_graph.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// A clustering of a graph's vertices. Clusters are numbered from 0 without gaps.
struct HomeClusters {
  std::vector<std::uint32_t> cluster_of;  // by vertex
  std::uint32_t count = 0;
};

/// Clusters by label propagation with a bound on the load of a cluster (Meyerhenke, Sanders and
/// Schulz, "Partitioning complex networks via size-constrained clustering", SEA 2014, section 3.1).
/// Initially every vertex is a cluster. Then, for a few rounds, each vertex, in order of degree
/// with random ties, joins the cluster with capacity that most of its edges lead to. If `within` is
/// not empty, vertices v and w may share a cluster only if within[v] = within[w].
HomeClusters ClusterVertices(const HomeGraph& graph, const HomeLoad& cap,
                             std::span<const PartitionId> within, std::uint64_t seed);

}  // namespace internal
}  // namespace rhizome
