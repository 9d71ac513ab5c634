#pragma once

#include <cstdint>

#include "rhizome/index/ingest_options.h"
#include "rhizome/index/input_estimate.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The estimate of `plan ingest`. Sizes in bytes.
struct IngestPlan {
  InputEstimate input;
  std::uint64_t edges = 0;           ///< directed edges, as stored
  std::uint64_t memory_to_hold = 0;  ///< the least --memory with which nothing is spilled
  /// --memory below which it is refused, even with the most partitions
  std::uint64_t least_memory = 0;
  std::uint64_t memory_bytes = 0;  ///< the limit that the rest was computed for
  bool spilled = false;
  std::uint32_t partitions = 1;  ///< a lower bound
  PartitionerKind partitioner = PartitionerKind::kRefined;
  std::uint64_t peak_memory_bytes = 0;  ///< the likely value, beyond the bare process
  std::uint64_t store_bytes = 0;
  std::uint64_t scratch_bytes = 0;  ///< at its peak
  std::uint64_t disk_bytes = 0;     ///< store and scratch together, at its peak
  double seconds = 0;               ///< see IngestSeconds
};
/// Estimates memory, disk and time of an ingestion without running it. Errors: those of
/// EstimateInput.
Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& options);

}  // namespace rhizome
