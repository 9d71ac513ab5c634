#pragma once

#include "cache/blocks/block_plan.h"
#include "cache/ranges/range_features.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the features of the first `places` targets of a pass, in the order of the pass and with
/// the neighbours that it draws. Walks over the lists once, on the calling thread. Memory: as
/// RangeFeatures and BlockPlanner, plus lists of a million edges, or of one vertex. Errors: as
/// BlockPlanner; kInterrupted.
Result<RangeFeatures> FeaturesOfPass(const GraphSnapshot& graph, BlockPlannerOptions pass,
                                     std::uint64_t places, const RangeFeatureOptions& options,
                                     const JobControl& control);

}  // namespace internal
}  // namespace rhizome
