#pragma once

#include <cstdint>
#include <vector>

#include "index/partition/half_edges.h"
#include "index/partition/partitioner.h"
#include "index/partition/replica_sets.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Runs kRefined, kAdaDne or kDne; only the first sets owners and metrics. Index numbers half-edges
/// and Part numbers partitions. The caller picks the smallest types that fit; they do not change
/// the result. `input` and `options` must be valid.
template <typename Index, typename Part>
Result<DividedEdges> PartitionByExpansion(const PartitionInput& input,
                                          const PartitionOptions& options,
                                          const JobControl& control);

/// Returns a bound on the memory of PartitionByExpansion and ChooseOwners without their input: the
/// half-edges; for each vertex its unassigned edges, claim, replicas and pending move; boundaries
/// and changes.
template <typename Index, typename Part>
std::uint64_t ExpansionBytesOf(std::uint64_t vertices, std::uint64_t edges,
                               std::uint32_t partitions) {
  constexpr std::uint64_t kBoundaryBytes = 40;  // measured: 10 to 30 (R-MAT, 2 to 64 partitions)
  using Halves = HalfEdges<Index, Part>;
  return edges * Halves::kBytesPerEdge +
         vertices * (Halves::kBytesPerVertex + sizeof(Index) + sizeof(Part) + 1 + kBoundaryBytes) +
         2 * ReplicaSets::EstimateBytes(vertices, partitions);
}

extern template Result<DividedEdges> PartitionByExpansion<std::uint32_t, std::uint8_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
extern template Result<DividedEdges> PartitionByExpansion<std::uint32_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);
extern template Result<DividedEdges> PartitionByExpansion<std::uint64_t, std::uint16_t>(
    const PartitionInput&, const PartitionOptions&, const JobControl&);

}  // namespace internal
}  // namespace rhizome
