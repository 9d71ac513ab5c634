#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "rhizome/job_control.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "tools/bench/graph/bench_sample.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {

/// Returns the edges that a sampler draws per second of processor time, in round `round` of
/// batches.
using SampleRate = std::function<Result<double>(const Sampler& sampler, std::uint32_t round)>;

/// Writes a share of the edges into the delta of the graph that was generated for the run: half of
/// the operations add edges between existing end points, half delete edges. Then samples this graph
/// alternately with `plain`, which does not see the updates. Errors: kInvalidArgument, a store that
/// was not generated for the run.
Result<nlohmann::ordered_json> SampleWithDelta(const BenchGraph& opened, const Sampler& plain,
                                               const SamplerOptions& sampling,
                                               const BenchSampleOptions& options,
                                               const SampleRate& rate, const JobControl& control);

}  // namespace rhizome
