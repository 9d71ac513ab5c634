#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/sampler_options.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// One draw for a frontier vertex: so many of its edges, or of those of one type.
struct ListRequest {
  static constexpr std::int32_t kAnyType = -1;
  std::int32_t type = kAnyType;
  std::int64_t fanout = 0;
};

/// What the options ask of each hop: its draws, by edge type.
using SamplingPlan = std::vector<std::vector<ListRequest>>;  // [hops]

/// Checks the options against the graph. Errors: kInvalidArgument, saying what would be right.
Result<SamplingPlan> PlanSampling(const GraphSnapshot& graph, const SamplerOptions& options);

}  // namespace rhizome::inline internal
