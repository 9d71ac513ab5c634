#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench write`: durable writes to a store generated for the run, compared with plain RocksDB that
/// writes the same bytes to the same disk. The puts alternate.
struct BenchWriteOptions {
  Path dir = ".";               ///< folder of store and database, on the disk to measure
  std::uint32_t scale = 14;     ///< RMAT: 2^scale vertices, 16 edges each
  std::uint32_t dim = 128;      ///< floats per feature row
  std::uint32_t puts = 2000;    ///< puts per contestant
  std::uint32_t batches = 200;  ///< batches of 1,000 edges
  std::uint32_t threads = 4;    ///< threads that put concurrently
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchWrite(const BenchWriteOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
