#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/partition_input.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// How edges are divided: see PartitionEdges and StreamingPartitioner.
enum class PartitionerKind : std::uint8_t {
  kRefined,
  kAdaDne,
  kDne,
  kHash2d,
  kDbh,
  kHdrf,
  kRandom,
  kRange,
};
std::string_view PartitionerName(PartitionerKind kind);
std::optional<PartitionerKind> ParsePartitioner(std::string_view name);

/// As stores note it (GenerationInfo::partitioner). They said "adadne" of kRefined before it had a
/// name, so that kAdaDne is "adadne-printed" there.
std::string_view StoredPartitionerName(PartitionerKind kind);
std::optional<PartitionerKind> ParseStoredPartitioner(std::string_view name);

struct PartitionOptions {
  PartitionerKind kind = PartitionerKind::kRefined;

  /// Range [1, kMaxPartitions].
  std::uint32_t partitions = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// kRefined, kDne, kHdrf: hard cap on a partition's edges, over the mean. At least 1. (Rounded up
  /// to what lets all edges fit, which only shows where a partition has a few edges.)
  double max_edge_balance = 1.05;

  /// kRefined: bound on a partition's vertices, over the mean. At least 1. Kept, whatever replicas
  /// that costs, but where edges are so few that even dealing them out at random leaves some
  /// partition with more: there the best balance found is taken, so that tiny graphs can be
  /// partitioned, too.
  double max_vertex_balance = 1.3;

  /// HDRF: weight of balance against replicas. Finite, at least 0; above 1, edges in an order that
  /// keeps neighbours together still spread.
  double hdrf_lambda = 1.1;
};

/// Errors: kInvalidArgument, an option out of range.
Status CheckPartitionOptions(const PartitionOptions& options);

/// Edge-cut-free ("vertex-cut") assignment: the partition of every input edge, in input order. The
/// result depends on the input, the seed and the options, not on the number of threads.
///
/// kRefined, ours: parallel neighbour expansion, slow and under a hard cap on edges, then a
/// refinement that removes replicas and balances vertices, then, where needed, a rebalance. (Its
/// expansion has the adaptive speed of GLISP, weakly and without compounding, which makes no
/// difference to what comes out: docs/RESULTS.md.)
/// kAdaDne: the expansion as GLISP (III-B, eq. 5-7) prints it, with the constants of its section
/// IV-B: each partition's speed adapts to how full it is, round upon round, without a cap. It winds
/// up, and keeps no bound; for comparison. kDne: the expansion alone at one speed for all, under
/// the cap (DistributedNE, Hanai et al., VLDB 2019). These three pass over the edges three times
/// and hold ExpansionBytes. The others look at one edge at a time (streaming_partitioner.h).
/// Errors: kInvalidArgument; kInterrupted; those of passing over the edges.
Result<std::vector<PartitionId>> PartitionEdges(const PartitionInput& input,
                                                const PartitionOptions& options,
                                                const JobControl& control);

/// What PartitionEdges and ChooseOwners take with kRefined, kAdaDne or kDne, at most, whatever the
/// input takes: 18 bytes an edge with up to 254 partitions and fewer than 2^31 edges, and some for
/// each vertex.
std::uint64_t ExpansionBytes(std::uint64_t vertex_count, std::uint64_t edge_count,
                             std::uint32_t partitions);

/// How good an assignment is (DESIGN section 4). Only vertices that have an edge count.
struct PartitionMetrics {
  double replication_factor = 0;  ///< sum of |V_p| over |V|
  double vertex_balance = 0;      ///< max |V_p| over mean |V_p|
  double edge_balance = 0;        ///< max |E_p| over mean |E_p|
  double interior_share = 0;      ///< vertices with exactly one replica

  /// What GLISP calls VB and EB (eq. 3, 4), never less than those above; infinite where a partition
  /// has none.
  double vertex_max_over_min = 0;
  double edge_max_over_min = 0;
};
/// Errors: kInvalidArgument, not one of the partitions for each edge; those of passing over the
/// edges.
Result<PartitionMetrics> MeasurePartition(const PartitionInput& input,
                                          std::span<const PartitionId> partition_of_edge,
                                          std::uint32_t partitions);

/// The partition that each vertex's row belongs to: one that holds edges of it, mostly the one with
/// most, ties and hubs going to where rows are fewest; isolated vertices go where rows are fewest.
/// Deterministic. Errors: as of MeasurePartition.
Result<std::vector<PartitionId>> ChooseOwners(const PartitionInput& input,
                                              std::span<const PartitionId> partition_of_edge,
                                              std::uint32_t partitions);

/// Most rows of a partition over the mean; 1 without vertices. Errors: kInvalidArgument, an owner
/// that is none of the partitions; kOutOfMemory.
Result<double> OwnerBalance(std::span<const PartitionId> owners, std::uint32_t partitions);

}  // namespace rhizome
