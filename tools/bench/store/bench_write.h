#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench write`: durable writes to a store that is made for the run, against bare RocksDB on the
/// same disk writing the same bytes, put by put in turn.
struct BenchWriteOptions {
  Path dir = ".";               ///< where store and database go; on the disk to be measured
  std::uint32_t scale = 14;     ///< RMAT: 2^scale vertices, 16 edges each
  std::uint32_t dim = 128;      ///< floats of a feature row
  std::uint32_t puts = 2000;    ///< of each contestant
  std::uint32_t batches = 200;  ///< of 1,000 edges
  std::uint32_t threads = 4;    ///< that put at once
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchWrite(const BenchWriteOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
