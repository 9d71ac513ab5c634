#pragma once

#include <cstdint>

#include "index/ingest/input_estimate.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// The path of the edges through an ingestion.
struct IngestRoute {
  bool spilled = false;  ///< whether any data passes through spill files
  bool held = true;      ///< whether the edges are held in memory once they are read
  PartitionerKind partitioner = PartitionerKind::kRefined;
  std::uint32_t partitions = 1;
};

/// Estimates the seconds that an ingestion takes on an idle machine: the sum of its steps with
/// measured constants, scaled by how much slower this processor does random increments than the
/// reference (a measurement of about 20 ms).
double IngestSeconds(const InputEstimate& input, const IngestOptions& options,
                     const IngestRoute& route);

}  // namespace internal
}  // namespace rhizome
