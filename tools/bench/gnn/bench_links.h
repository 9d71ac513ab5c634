#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

struct BenchLinksOptions {
  BenchGraphOptions graph;
  std::string model = "hgt";
  std::int64_t hidden = 128;
  std::vector<std::int64_t> fanouts = {15, 10};
  std::uint64_t batch_size = 1000;  ///< edges
  std::uint64_t batches = 20;       ///< that are scored samplewise; the others are extrapolated
  std::uint64_t memory_bytes = 0;   ///< 0: no limit
};

/// Compares two ways to score all edges of a graph with an encoder and a decoder of two layers.
/// Samplewise: for each batch of edges, the neighbourhoods of both ends are sampled and the model
/// computes the rows. Layerwise: the rows of all vertices are computed layer by layer, then the
/// pairs are scored. Both draw the same number of neighbours in each layer. Source: GLISP, section
/// on inference (link prediction, Fig. 13).
Result<nlohmann::ordered_json> BenchLinks(const BenchLinksOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
