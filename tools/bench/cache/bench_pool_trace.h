#pragma once

#include <cstdint>

#include "bench_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Returns the rows requested by one superbatch, sampled as `options` specify: a step per
/// minibatch, beginning with minibatch number `first`.
Result<Trace> SampleTrace(const BenchPoolOptions& options, const GraphSnapshot& graph,
                          const JobControl& control, std::uint32_t first = 0);

/// Writes `trace` as [requests, 2] int64 of step and vertex. Errors: as OutputFile.
Status WriteTrace(const Trace& trace, const GraphSnapshot& graph, const std::string& path);

}  // namespace rhizome
