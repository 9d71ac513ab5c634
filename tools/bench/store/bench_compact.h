#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench compact`: a store made for the run takes in a share of its edges as updates; bytes a
/// second against the disk's sequential rate; then once more beside durable puts: how long they
/// wait.
struct BenchCompactOptions {
  Path dir = ".";                  ///< where the store goes, on the disk to be measured
  std::uint32_t scale = 18;        ///< RMAT: 2^scale vertices
  std::uint32_t edge_factor = 16;  ///< edges a vertex
  std::uint32_t dim = 256;         ///< floats of a feature row
  std::uint32_t partitions = 4;
  double share = 0.01;        ///< of the edges, written before
  std::uint32_t puts = 1000;  ///< durable puts of one edge while nothing else goes on
  std::uint32_t threads = 2;
  std::uint64_t memory_bytes = 0;
  bool repartition = false;
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchCompact(const BenchCompactOptions& options,
                                            const JobControl& control);

}  // namespace rhizome
