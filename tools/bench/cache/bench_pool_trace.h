#pragma once

#include <cstdint>

#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "tools/bench/cache/bench_pool.h"

namespace rhizome {

/// Returns the rows requested by one superbatch, sampled as `options` specify: a step per
/// minibatch, beginning with minibatch number `first`.
Result<Trace> SampleTrace(const BenchPoolOptions& options, const GraphSnapshot& graph,
                          const JobControl& control, std::uint32_t first = 0);

/// Writes `trace` as [requests, 2] int64 of step and vertex. Errors: as OutputFile.
Status WriteTrace(const Trace& trace, const GraphSnapshot& graph, const std::string& path);

}  // namespace rhizome
