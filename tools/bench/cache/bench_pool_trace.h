#pragma once

#include <cstdint>

#include "bench_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The rows of one superbatch, sampled as `options` say: a step for each minibatch, the first of
/// which has the number `first`.
Result<Trace> SampleTrace(const BenchPoolOptions& options, const GraphSnapshot& graph,
                          const JobControl& control, std::uint32_t first = 0);

/// Writes `trace` as [requests, 2] int64 of step and vertex. Errors: those of OutputFile.
Status WriteTrace(const Trace& trace, const GraphSnapshot& graph, const std::string& path);

}  // namespace rhizome
