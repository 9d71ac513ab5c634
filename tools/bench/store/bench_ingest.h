#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench ingest`: ingests an R-MAT graph as .npy and as TSV, with one and with several partitions,
/// in memory and through scratch files. Reports wall-clock and processor time of each.
struct BenchIngestOptions {
  Path dir = ".";  ///< folder of input and stores, which are removed afterwards
  std::uint32_t scale = 18;
  std::uint32_t edge_factor = 16;
  std::uint32_t partitions = 8;
  std::uint32_t threads = 1;
  std::uint32_t rounds = 1;  ///< turns per contestant; the fastest counts
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchIngest(const BenchIngestOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
