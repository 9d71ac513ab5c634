#pragma once

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/range_features.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the features of the first `places` targets of a pass, in the order in which it computes
/// them, and with the lists that it draws. One walk over the lists, on the calling thread. Memory:
/// that of RangeFeatures and of a BlockPlanner, and lists of a million edges, or of one vertex.
/// Errors: those of BlockPlanner; kInterrupted.
Result<RangeFeatures> FeaturesOfPass(const GraphSnapshot& graph, BlockPlannerOptions pass,
                                     std::uint64_t places, const RangeFeatureOptions& options,
                                     const JobControl& control);

}  // namespace internal
}  // namespace rhizome
