#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "index/partition/partition_input.h"
#include "rhizome/export.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the name of a kind, for example "refined". ParsePartitioner is the inverse; it returns
/// nullopt for an unknown name.
std::string_view PartitionerName(PartitionerKind kind);

/// Returns every kind, in the order of the help text; the first is the default.
std::vector<PartitionerKind> Partitioners();
std::optional<PartitionerKind> ParsePartitioner(std::string_view name);

/// Returns and parses the name that stores keep (GenerationInfo::partitioner). It differs from
/// PartitionerName for historical reasons: stores recorded kRefined as "adadne" before it had a
/// name of its own, so kAdaDne is "adadne-printed" there.
std::string_view StoredPartitionerName(PartitionerKind kind);
std::optional<PartitionerKind> ParseStoredPartitioner(std::string_view name);

/// Errors: kInvalidArgument, an option out of range.
Status CheckPartitionOptions(const PartitionOptions& options);

/// Vertex-cut partitioning: returns the partition of every input edge, in input order. The result
/// depends on the input, the seed and the options, but not on the number of threads.
///
/// kRefined, our own algorithm: parallel neighbour expansion, slow and under a hard cap on edges;
/// then a refinement that removes replicas and balances vertices; then, if needed, a rebalance.
/// (The expansion uses the adaptive speed of GLISP, weakly and without compounding, which does not
/// change the quality of the result: docs/studies/partitioning.md.)
///
/// kAdaDne: our expansion at the speeds of GLISP's AdaDNE as printed (section III-B, eq. 5-7,
/// without a cap), with the constants of its section IV-B: each partition's speed adapts to its
/// load, compounding from round to round. In our implementation the speeds wind up and keep no
/// bound, so this kind serves only as a baseline.
///
/// kDne: our expansion alone, at one speed for all and under the cap. It follows the outline of
/// DistributedNE (Hanai et al., VLDB 2019), but its results differ: lambda is 0.01 instead of 0.1,
/// the cap is max_edge_balance, and vertices leave a boundary by buckets of similar counts of
/// unassigned edges (BoundaryQueue).
///
/// These three kinds scan the edges three times and need ExpansionBytes of memory. The other kinds
/// process one edge at a time (streaming_partitioner.h).
/// Errors: kInvalidArgument; kInterrupted; any error of scanning the edges.
Result<std::vector<PartitionId>> PartitionEdges(const PartitionInput& input,
                                                const PartitionOptions& options,
                                                const JobControl& control);

/// Quality of an assignment (docs/DESIGN.md, section 4). Only vertices with at least one edge
/// count.
struct PartitionMetrics {
  double replication_factor = 0;  ///< sum of |V_p| over |V|
  double vertex_balance = 0;      ///< max |V_p| over mean |V_p|
  double edge_balance = 0;        ///< max |E_p| over mean |E_p|
  double interior_share = 0;      ///< vertices with exactly one replica

  /// VB and EB of GLISP (section II-B, eq. 4 and 3), never less than the balances above; infinite
  /// if a partition has no vertices or edges.
  double vertex_max_over_min = 0;
  double edge_max_over_min = 0;
};

/// An assignment with what MeasurePartition and ChooseOwners return for it.
struct DividedEdges {
  std::vector<PartitionId> partition_of_edge;  ///< in input order; empty if there is one partition
  std::vector<PartitionId> owners;             ///< by vertex
  PartitionMetrics metrics;
};

/// As PartitionEdges, MeasurePartition and ChooseOwners together, with fewer scans of the edges.
/// Errors: as PartitionEdges.
Result<DividedEdges> DivideEdges(const PartitionInput& input, const PartitionOptions& options,
                                 const JobControl& control);

/// Returns a bound on the bytes that PartitionEdges (kRefined, kAdaDne or kDne) and ChooseOwners
/// need besides the input: 18 bytes an edge with up to 254 partitions and fewer than 2^31 edges,
/// plus some for each vertex.
std::uint64_t ExpansionBytes(std::uint64_t vertex_count, std::uint64_t edge_count,
                             std::uint32_t partitions);

/// Measures an assignment.
/// Errors: kInvalidArgument, not one valid partition for each edge; any error of scanning the
/// edges.
Result<PartitionMetrics> MeasurePartition(const PartitionInput& input,
                                          std::span<const PartitionId> partition_of_edge,
                                          std::uint32_t partitions);

/// Chooses the partition that owns each vertex's row. The owner holds edges of the vertex, usually
/// the most. Ties and hubs go to the candidate with the fewest rows, isolated vertices to the
/// partition with the fewest rows. Deterministic.
/// Errors: as MeasurePartition.
Result<std::vector<PartitionId>> ChooseOwners(const PartitionInput& input,
                                              std::span<const PartitionId> partition_of_edge,
                                              std::uint32_t partitions);

/// Returns the largest number of rows of a partition over the mean; 1 without vertices.
/// Errors: kInvalidArgument, an owner that is not below `partitions`; kOutOfMemory.
Result<double> OwnerBalance(std::span<const PartitionId> owners, std::uint32_t partitions);

}  // namespace rhizome
