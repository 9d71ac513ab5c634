#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "index/partition/partitioner.h"

namespace rhizome {

/// Measurements of one partitioning.
struct PartitionRun {
  PartitionMetrics metrics;
  double owner_balance = 0;
  double seconds = 0;
  double cpu_seconds = 0;

  /// Peak memory of the partitioner, including its result, beyond the memory that was in use before
  /// it. If the input is a file, all memory of the run. Absent if the kernel does not let a process
  /// reset its peak.
  std::optional<std::uint64_t> memory_bytes;
  std::vector<PartitionId> partition_of_edge;
};

/// Partitions, then measures the result. Only the partitioning is timed. Errors: as PartitionEdges.
Result<PartitionRun> RunPartitioner(const PartitionInput& input, const PartitionOptions& options,
                                    const JobControl& control);

/// Returns a warning if the result exceeds the requested balance bounds. In this case no strategy
/// that the partitioner knows met them, and it chose the best result.
std::optional<std::string> BalanceWarning(const PartitionOptions& options, double vertex_balance,
                                          std::uint64_t edges, std::uint64_t vertices);

/// Returns "1.234", or "infinite" for null (a partition is empty).
std::string MaxOverMinText(const nlohmann::ordered_json& number);

/// Returns the fields that `partition` and `bench partition` share.
nlohmann::ordered_json PartitionRunFields(const PartitionRun& run, std::uint64_t edges);

}  // namespace rhizome
