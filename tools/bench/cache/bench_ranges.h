#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench ranges`: CPU seconds of an aggregation over ranges of vertices, cut by a cost that was
/// learned on other graphs, beside equal vertices and equal edges.
struct BenchRangesOptions {
  std::vector<std::string> fit;  ///< stores to learn on; empty: an R-MAT of 2^scale vertices
  std::string cut;               ///< store to cut; empty: an R-MAT of twice as many
  std::string dir = ".";
  std::uint32_t scale = 14;
  std::vector<std::uint32_t> parts = {2, 4, 8, 16};
  std::uint32_t columns = 64;    ///< of the rows that are summed
  std::uint32_t iterations = 6;  ///< on each graph to learn on
  std::uint32_t rounds = 5;      ///< of measuring a range; the median counts
  std::uint64_t seed = 1;
  std::string costs;  ///< file that the learned costs are written to
  std::string plot;
};
Result<Json> BenchRanges(const BenchRangesOptions& options, const JobControl& control);

}  // namespace rhizome
