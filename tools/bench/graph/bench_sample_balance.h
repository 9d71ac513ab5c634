#pragma once

#include <nlohmann/json.hpp>

#include "bench_sample.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Work of each partition, in entries touched: seeds spread evenly over all vertices, or skewed
/// (all from one partition); lists cut over the partitions as the store's are (each partition
/// serves its share of a list), or whole lists by owner as an edge cut has them
/// (options.vertex_parts, or the store's owners). One object for each: max over mean, and the
/// shares. GLISP's Fig. 10 asks the same question with another measure: the throughput of each
/// server over the smallest of all.
Result<nlohmann::ordered_json> SampleBalance(const GraphSnapshot& graph,
                                             const SamplerOptions& sampling,
                                             const BenchSampleOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
