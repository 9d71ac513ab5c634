#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench compact`: compacts a store generated for the run after a share of its edges was written
/// as updates. Reports bytes per second relative to the sequential rate of the disk. Then compacts
/// again beside durable puts, and beside look-ups, and reports their latencies.
struct BenchCompactOptions {
  Path dir = ".";                  ///< folder of the store, on the disk to measure
  std::uint32_t scale = 18;        ///< RMAT: 2^scale vertices
  std::uint32_t edge_factor = 16;  ///< edges per vertex
  std::uint32_t dim = 256;         ///< floats per feature row
  std::uint32_t partitions = 4;
  double share = 0.01;        ///< share of the edges written as updates before each compaction
  std::uint32_t puts = 1000;  ///< durable puts of one edge on the idle store
  std::uint32_t threads = 2;
  std::uint64_t memory_bytes = 0;
  bool repartition = false;
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchCompact(const BenchCompactOptions& options,
                                            const JobControl& control);

}  // namespace rhizome
