#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench gather`: cold random rows through RowReader, and through a bare IoQueue, against fio with
/// the same block size, depth and files, contestants taking turns in one run.
struct BenchGatherOptions {
  std::optional<Path> store;  ///< of the array to read; absent: a temporary store is made
  std::string array;          ///< of `store`, in layout kRow
  Path dir = ".";             ///< where the temporary store goes; on the disk to be measured
  std::uint64_t bytes = std::uint64_t{4} << 30;  ///< size of the temporary array
  std::uint64_t row_bytes = 1024;                ///< of the temporary array; a multiple of 4
  std::uint32_t depth = 64;                      ///< requests in flight
  IoMaker maker = IoMaker::kAuto;
  bool direct = true;
  std::uint32_t rounds = 5;
  double seconds = 2;  ///< of one contestant in one round
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchGather(const BenchGatherOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
