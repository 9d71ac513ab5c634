#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"

namespace rhizome {

/// `bench gather`: cold random reads of rows through RowReader and through a plain IoQueue,
/// compared with fio at the same block size, depth and files. The contestants alternate within one
/// run.
struct BenchGatherOptions {
  /// store of the array to read; absent: a temporary store is generated
  std::optional<Path> store;
  std::string array;  ///< array of `store`, in layout kRow
  Path dir = ".";     ///< folder of the temporary store, on the disk to measure
  std::uint64_t bytes = std::uint64_t{4} << 30;  ///< size of the temporary array
  std::uint64_t row_bytes = 1024;  ///< row size of the temporary array; a multiple of 4
  std::uint32_t depth = 64;        ///< requests in flight
  IoMaker maker = IoMaker::kAuto;
  bool direct = true;
  std::uint32_t rounds = 5;
  double seconds = 2;  ///< per contestant and round
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchGather(const BenchGatherOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
