#pragma once

#include <cstdint>

#include "rhizome/index/ingest_options.h"
#include "rhizome/index/input_estimate.h"

namespace rhizome::inline internal {

/// How an ingestion goes about its edges.
struct IngestRoute {
  bool spilled = false;  ///< does anything go through spill files?
  bool held = true;      ///< do the edges wait in memory, once they are read?
  PartitionerKind partitioner = PartitionerKind::kRefined;
  std::uint32_t partitions = 1;
};

/// The time that it will take, if processors and disk have nothing else to do: the sum of its steps
/// with constants that were measured, times how much slower than there this processor does random
/// increments (a measurement of some 20 ms).
double IngestSeconds(const InputEstimate& input, const IngestOptions& options,
                     const IngestRoute& route);

}  // namespace rhizome::inline internal
