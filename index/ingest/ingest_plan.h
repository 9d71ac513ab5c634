#pragma once

#include <cstdint>

#include "index/ingest/input_estimate.h"
#include "rhizome/export.h"
#include "rhizome/ingest.h"

namespace RHIZOME_API rhizome {

/// The estimate of `plan ingest`. Sizes are in bytes.
struct IngestPlan {
  InputEstimate input;
  std::uint64_t edges = 0;           ///< directed edges, as stored
  std::uint64_t memory_to_hold = 0;  ///< smallest --memory with which nothing is spilled
  /// smallest --memory that is accepted, even with the maximum number of partitions
  std::uint64_t min_memory = 0;
  std::uint64_t memory_bytes = 0;  ///< the limit for which the values below were computed
  bool spilled = false;
  std::uint32_t partitions = 1;  ///< a lower bound
  PartitionerKind partitioner = PartitionerKind::kRefined;
  std::uint64_t peak_memory_bytes = 0;  ///< likely value, beyond the bare process
  std::uint64_t store_bytes = 0;
  std::uint64_t scratch_bytes = 0;  ///< peak size
  std::uint64_t disk_bytes = 0;     ///< peak size of store and scratch together
  double seconds = 0;               ///< see IngestSeconds
};
/// Estimates memory, disk and time of an ingestion without running it.
/// Errors: as EstimateInput.
Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& options);

}  // namespace rhizome
