#pragma once

#include <nlohmann/json.hpp>

#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "tools/bench/graph/bench_sample.h"

namespace rhizome {

/// Measures the work of each partition, in entries read. Seeds are spread evenly over all vertices,
/// or skewed (all from one partition). Lists are either divided over the partitions as in the store
/// (each partition serves its share of a list), or served whole by the owner of the vertex, as in
/// an edge cut (options.vertex_parts, or the store's owners). Returns one object per combination:
/// max over mean, and the shares. Figure 10 of GLISP answers the same question by another measure:
/// the throughput of each server over the lowest throughput.
Result<nlohmann::ordered_json> SampleBalance(const GraphSnapshot& graph,
                                             const SamplerOptions& sampling,
                                             const BenchSampleOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
