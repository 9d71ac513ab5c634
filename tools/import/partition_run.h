#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/partitioner.h"

namespace rhizome {

/// One partitioning that was measured.
struct PartitionRun {
  PartitionMetrics metrics;
  double owner_balance = 0;
  double seconds = 0;
  double cpu_seconds = 0;

  /// Highest memory of the partitioner beyond what was held before it, with the result; all there
  /// is, where the input comes from a file. Nothing where the kernel does not let a process reset
  /// its peak.
  std::optional<std::uint64_t> memory_bytes;
  std::vector<PartitionId> partition_of_edge;
};

/// Partitions, then measures; only the former is timed. Errors: those of PartitionEdges.
Result<PartitionRun> RunPartitioner(const PartitionInput& input, const PartitionOptions& options,
                                    const JobControl& control);

/// Why the result is outside of the bounds that were asked for, where it is: the partitioner tried
/// to deal the edges in all the ways it knows, and took the best.
std::optional<std::string> BalanceWarning(const PartitionOptions& options, double vertex_balance,
                                          std::uint64_t edges, std::uint64_t vertices);

/// "1.234", or "infinite" where there is no such number: a part has nothing.
std::string MaxOverMinText(const nlohmann::ordered_json& number);

/// The fields that `partition` and `bench partition` print alike.
nlohmann::ordered_json PartitionRunFields(const PartitionRun& run, std::uint64_t edges);

}  // namespace rhizome
