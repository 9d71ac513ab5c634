#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// `bench tables`: rows of a table of embeddings that an epoch of training on links reads if a part
/// of the rows fits in memory: batches of one partition after another with a Belady cache, compared
/// with Marius' BETA order, which swaps parts of the table.
struct BenchTablesOptions {
  BenchGraphOptions graph;
  std::uint64_t negatives = 512;                    ///< for each batch and side
  std::string mixture = "resident:.5,uniform:.5";   ///< of negatives
  std::vector<double> shares = {.25, .125, .0625};  ///< of the rows that fit in memory
  std::uint32_t epochs = 3;                         ///< the first one is not counted
  std::uint64_t dim = 0;  ///< numbers of a row; 0: counts only, nothing is read
};
Result<nlohmann::ordered_json> BenchTables(const BenchTablesOptions& options,
                                           const JobControl& control);

/// The swaps of Marius' BETA order for a table of `parts` parts and a buffer of `buffer` parts (2
/// to parts - 1): each two parts are in the buffer together at some time. The buffer begins with
/// the parts [0, buffer); each swap replaces one part. Source: Mohoney et al., "Marius" (OSDI
/// 2021), section 4.2, without its random permutations, which do not change the number of swaps.
struct BetaSwap {
  std::uint32_t out = 0;
  std::uint32_t in = 0;
};
std::vector<BetaSwap> BetaOrder(std::uint32_t parts, std::uint32_t buffer);

}  // namespace rhizome
