#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

struct BenchLinksOptions {
  BenchGraphOptions graph;  ///< `batch_size`: edges, or vertices, per batch
  std::string features = "feat";
  std::string model = "hgt";
  std::uint64_t hidden = 128;
  std::uint32_t batches = 20;      ///< batches that are computed samplewise
  std::uint64_t memory_bytes = 0;  ///< limit of each verb and cache of the samplewise rows
};

/// Compares two ways to embed all vertices of a graph, and to score all of its edges with a decoder
/// of two layers. Layerwise: `rhizome infer` computes the rows of all vertices layer by layer, and
/// `rhizome score --all-edges` scores the edges. Samplewise: the neighbourhoods of both ends of a
/// batch of random edges are sampled, and the network computes their rows for this batch. Both draw
/// the same number of neighbours in each layer, and have the same threads and the same memory. The
/// samplewise rates are measured over `batches`. If all fanouts are kAllNeighbors, the scores of
/// both are compared, too.
/// Source: GLISP, section IV and Fig. 13.
Result<nlohmann::ordered_json> BenchLinks(const BenchLinksOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
