#pragma once

#include <cstdint>

#include "rhizome/index/ingest_options.h"
#include "rhizome/index/input_estimate.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// What `plan ingest` says. Sizes in bytes.
struct IngestPlan {
  InputEstimate input;
  std::uint64_t edges = 0;           ///< directed ones, as stored
  std::uint64_t memory_to_hold = 0;  ///< --memory with which nothing is spilled
  std::uint64_t least_memory = 0;    ///< --memory below which it is refused, with most partitions
  std::uint64_t memory_bytes = 0;    ///< that the rest was computed for
  bool spilled = false;
  std::uint32_t partitions = 1;  ///< at least so many
  PartitionerKind partitioner = PartitionerKind::kRefined;
  std::uint64_t peak_memory_bytes = 0;  ///< that is likely, beyond the bare process
  std::uint64_t store_bytes = 0;
  std::uint64_t scratch_bytes = 0;  ///< at its peak
  std::uint64_t disk_bytes = 0;     ///< store and scratch together, at its peak
  double seconds = 0;               ///< see IngestSeconds
};
Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& options);

}  // namespace rhizome
