#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "rhizome/file_system.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {

/// `bench verify`: bytes per second of VerifyFiles and VerifyGraph, compared with sequential direct
/// reads of the same files by fio. The contestants alternate.
struct BenchVerifyOptions {
  std::optional<Path> store;  ///< absent: a temporary store is generated
  Path dir = ".";             ///< folder of the temporary store, on the disk to measure
  std::uint64_t bytes = std::uint64_t{2} << 30;  ///< size of its features
  std::uint64_t row_bytes = 1024;
  std::uint32_t edge_factor = 4;  ///< edges per vertex
  std::uint32_t rounds = 5;
  double fio_seconds = 2;
};
Result<nlohmann::ordered_json> BenchVerify(const BenchVerifyOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
