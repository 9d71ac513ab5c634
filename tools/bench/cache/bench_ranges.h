#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/cli/json.h"

namespace rhizome {

/// `bench ranges`: CPU seconds of an aggregation over ranges of vertices, divided by a cost model
/// learned on other graphs, compared with ranges of equal vertices and of equal edges.
struct BenchRangesOptions {
  std::vector<std::string> fit;  ///< stores to learn on; empty: an R-MAT of 2^scale vertices
  std::string cut;               ///< store to divide; empty: an R-MAT of twice as many vertices
  std::string dir = ".";
  std::uint32_t scale = 14;
  std::vector<std::uint32_t> parts = {2, 4, 8, 16};
  std::uint32_t columns = 64;    ///< columns of the rows that are summed
  std::uint32_t iterations = 6;  ///< iterations per graph that is learned on
  std::uint32_t rounds = 5;      ///< measurements per range; the median counts
  std::uint64_t seed = 1;
  std::string costs;  ///< output file for the learned costs
  std::string plot;
};
Result<Json> BenchRanges(const BenchRangesOptions& options, const JobControl& control);

}  // namespace rhizome
