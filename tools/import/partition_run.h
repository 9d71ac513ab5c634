#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/partitioner.h"

namespace rhizome {

/// The measurements of one partitioning.
struct PartitionRun {
  PartitionMetrics metrics;
  double owner_balance = 0;
  double seconds = 0;
  double cpu_seconds = 0;

  /// Peak memory of the partitioner in addition to what was held before it, including the result.
  /// If the input is a file, it is all memory of the run. Absent if the kernel does not let a
  /// process reset its peak.
  std::optional<std::uint64_t> memory_bytes;
  std::vector<PartitionId> partition_of_edge;
};

/// Partitions, then measures; only the partitioning is timed. Errors: those of PartitionEdges.
Result<PartitionRun> RunPartitioner(const PartitionInput& input, const PartitionOptions& options,
                                    const JobControl& control);

/// Returns a warning if the result exceeds the bounds that were asked for: the partitioner tried
/// every way of dealing the edges that it knows, and took the best.
std::optional<std::string> BalanceWarning(const PartitionOptions& options, double vertex_balance,
                                          std::uint64_t edges, std::uint64_t vertices);

/// Returns "1.234", or "infinite" for null, which means that a partition is empty.
std::string MaxOverMinText(const nlohmann::ordered_json& number);

/// Returns the fields that `partition` and `bench partition` have in common.
nlohmann::ordered_json PartitionRunFields(const PartitionRun& run, std::uint64_t edges);

}  // namespace rhizome
