#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench lookup --cold`: reads of random rows on disk by vertex id, through Graph::ReadRows and
/// RowLookup, alternating with the RowReader that training uses, and with fio.
struct BenchColdRowsOptions {
  Path dir = ".";                                ///< folder of the temporary store
  std::uint64_t bytes = std::uint64_t{1} << 30;  ///< size of the array
  std::uint32_t dim = 256;                       ///< floats per row
  std::uint32_t batch = 32768;                   ///< vertices per call, about a minibatch
  std::uint32_t rounds = 3;
  double seconds = 2;  ///< of each turn
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchColdRows(const BenchColdRowsOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
