#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench verify`: bytes a second of VerifyFiles and VerifyGraph, against fio's sequential direct
/// reads of the same files, contestants taking turns.
struct BenchVerifyOptions {
  std::optional<Path> store;                     ///< absent: a temporary one is made
  Path dir = ".";                                ///< where that goes; on the disk to be measured
  std::uint64_t bytes = std::uint64_t{2} << 30;  ///< of its features
  std::uint64_t row_bytes = 1024;
  std::uint32_t edge_factor = 4;  ///< edges a vertex
  std::uint32_t rounds = 5;
  double fio_seconds = 2;
};
Result<nlohmann::ordered_json> BenchVerify(const BenchVerifyOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
