#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// One draw for a frontier vertex: a number of its edges, of any type or of one type.
struct ListRequest {
  static constexpr std::int32_t kAnyType = -1;
  std::int32_t type = kAnyType;
  std::int64_t fanout = 0;
};

/// The draws of each hop, by edge type.
using SamplingPlan = std::vector<std::vector<ListRequest>>;  // [hops]

/// Checks that a store keeps the lists of a direction, or of both.
/// Errors: kInvalidArgument, naming the ingestion option that stores them.
Status CheckDirection(const GenerationInfo& info, Direction direction);

/// Checks the options against the graph, and plans the draws.
/// Errors: kInvalidArgument, naming the valid values.
Result<SamplingPlan> PlanSampling(const GraphSnapshot& graph, const SamplerOptions& options);

}  // namespace internal
}  // namespace rhizome
