#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench lookup --cold`: random rows that are on disk, by vertex id, through Graph::ReadRows and
/// RowLookup, in turns with the RowReader that training reads with, and with fio.
struct BenchColdRowsOptions {
  Path dir = ".";                                ///< where the store goes, for the run
  std::uint64_t bytes = std::uint64_t{1} << 30;  ///< of the array
  std::uint32_t dim = 256;                       ///< floats of a row
  std::uint32_t batch = 32768;                   ///< vertices of a call, about a minibatch
  std::uint32_t rounds = 3;
  double seconds = 2;  ///< of a turn
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchColdRows(const BenchColdRowsOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
