#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"
#include "tools/cli/json.h"

namespace rhizome {

/// `bench fullgraph`: counts the bytes that full-graph training would move between memory and disk.
/// No training is run.
struct BenchFullGraphOptions {
  BenchGraphOptions graph;
  std::vector<std::uint32_t> layers = {2, 3, 4, 6};
  /// memory limits, as shares of the activations
  std::vector<std::string> limits = {"1/2", "1/4", "1/8"};
  std::uint32_t features = 128;  ///< columns
  std::uint32_t hidden = 256;
  std::uint64_t chunk_rows = 1024;
  std::uint64_t stage_rows = std::uint64_t{1} << 16;
  std::uint64_t max_states = 20'000;
  std::string plot;
};
Result<Json> BenchFullGraph(const BenchFullGraphOptions& options, const JobControl& control);

/// `bench fullgraph --reddit-shape`: reproduces the bars of ROC's Figure 10a by counting, from the
/// published sizes of Reddit, for a GCN of two layers and 256 columns. The paper does not specify
/// the sizes of its network.
Result<Json> BenchRedditShape();

}  // namespace rhizome
