#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/partition_input.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome {

enum class PartitionerKind : std::uint8_t { kAdaDne, kDne, kHash2d, kDbh, kHdrf, kRandom, kRange };
std::string_view PartitionerName(PartitionerKind kind);
std::optional<PartitionerKind> ParsePartitioner(std::string_view name);

struct PartitionOptions {
  PartitionerKind kind = PartitionerKind::kAdaDne;

  /// Range [1, kMaxPartitions].
  std::uint32_t partitions = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// AdaDNE, DNE, HDRF: hard cap on a partition's edges, over the mean. At least 1. (Rounded up to
  /// what lets all edges fit, which only shows where a partition has a few edges.)
  double max_edge_balance = 1.05;

  /// AdaDNE: bound on a partition's vertices, over the mean. At least 1. Kept, whatever replicas
  /// that costs, but where edges are so few that even dealing them out at random leaves some
  /// partition with more: there the best balance found is taken, so that tiny graphs can be
  /// partitioned, too.
  double max_vertex_balance = 1.3;

  /// AdaDNE: the formula as GLISP prints it (the speed compounds, no cap), and no refinement: for
  /// comparison. It winds up, and keeps no bound.
  bool printed_formula = false;

  /// HDRF: weight of balance against replicas. Finite, at least 0; above 1, edges in an order that
  /// keeps neighbours together still spread.
  double hdrf_lambda = 1.1;
};

/// Errors: kInvalidArgument, an option out of range.
Status CheckPartitionOptions(const PartitionOptions& options);

/// Edge-cut-free ("vertex-cut") assignment: the partition of every input edge, in input order. The
/// result depends on the input, the seed and the options, not on the number of threads.
///
/// kAdaDne: parallel neighbour expansion whose speed adapts to how full a partition is (GLISP
/// III-B, eq. 5-7; without compounding, with constants of our own and a hard edge cap, because the
/// printed form winds up), then a refinement that removes replicas, then, where needed, a
/// rebalance. kDne: the expansion alone at one speed for all, under the cap (DistributedNE, Hanai
/// et al., VLDB 2019). Both pass over the edges three times and hold ExpansionBytes. The others
/// look at one edge at a time (streaming_partitioner.h). Errors: kInvalidArgument; kInterrupted;
/// those of passing over the edges.
Result<std::vector<PartitionId>> PartitionEdges(const PartitionInput& input,
                                                const PartitionOptions& options,
                                                const JobControl& control);

/// What PartitionEdges and ChooseOwners take with kAdaDne or kDne, at most, whatever the input
/// takes: 18 bytes an edge with up to 254 partitions and fewer than 2^31 edges, and some for each
/// vertex.
std::uint64_t ExpansionBytes(std::uint64_t vertex_count, std::uint64_t edge_count,
                             std::uint32_t partitions);

/// How good an assignment is (DESIGN section 4). Only vertices that have an edge count.
struct PartitionMetrics {
  double replication_factor = 0;  ///< sum of |V_p| over |V|
  double vertex_balance = 0;      ///< max |V_p| over mean |V_p|
  double edge_balance = 0;        ///< max |E_p| over mean |E_p|
  double interior_share = 0;      ///< vertices with exactly one replica
};
/// Errors: kInvalidArgument, not a partition for each edge; those of passing over the edges.
Result<PartitionMetrics> MeasurePartition(const PartitionInput& input,
                                          std::span<const PartitionId> partition_of_edge,
                                          std::uint32_t partitions);

/// The partition that each vertex's row belongs to: one that holds edges of it, mostly the one with
/// most, ties and hubs going to where rows are fewest; isolated vertices go where rows are fewest.
/// Deterministic. Errors: as of MeasurePartition.
Result<std::vector<PartitionId>> ChooseOwners(const PartitionInput& input,
                                              std::span<const PartitionId> partition_of_edge,
                                              std::uint32_t partitions);

/// Most rows of a partition over the mean; 1 without vertices.
double OwnerBalance(std::span<const PartitionId> owners, std::uint32_t partitions);

}  // namespace rhizome
