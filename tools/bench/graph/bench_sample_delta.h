#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "bench_common.h"
#include "bench_sample.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Edges that a sampler draws in a second of processor time, over round `round` of batches.
using SampleRate = std::function<Result<double>(const Sampler& sampler, std::uint32_t round)>;

/// Writes a share of the edges into the delta of the graph that was made for the run, half of them
/// new edges between old ends, half erased ones, and samples it in turns with `plain`, which has
/// none of them. Errors: kInvalidArgument, a store that was not made for the run.
Result<nlohmann::ordered_json> SampleWithDelta(const BenchGraph& opened, const Sampler& plain,
                                               const SamplerOptions& sampling,
                                               const BenchSampleOptions& options,
                                               const SampleRate& rate, const JobControl& control);

}  // namespace rhizome
