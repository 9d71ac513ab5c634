#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/cli/json.h"

namespace rhizome {

/// `bench inputs`: bytes that an epoch of a Loader reads from an array of features for each vertex
/// type, with the division of cache memory that the loader chose, compared with the best division
/// into sixteenths (found by trying all of them) and with equal parts.
struct BenchInputsOptions {
  std::string dir = ".";
  std::uint32_t scale = 15;  ///< R-MAT: 2^scale vertices
  std::uint32_t edge_factor = 16;
  std::vector<std::uint64_t> dims = {32, 128, 768};  ///< width of the array of each type
  std::vector<double> parts = {.6, .3, .1};          ///< part of the vertices that has each type
  std::vector<double> shares = {.05, .1, .2, .4};    ///< cache memory, as fractions of all rows
  std::vector<std::int64_t> fanouts = {10, 10};
  std::uint32_t batch_size = 500;
  std::uint32_t superbatch = 16;
  std::uint64_t seed = 1;
};
Result<Json> BenchInputs(const BenchInputsOptions& options, const JobControl& control);

}  // namespace rhizome
