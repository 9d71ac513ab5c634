#pragma once

#include <span>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/pass_sequence.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Counts what `blocks` gather, as BlockPlanner stages it: the chunks of each block, window by
/// window. Errors: those of PlanReads.
Result<GatherReads> CountGather(const GraphSnapshot& graph, const BlockPlannerOptions& options,
                                std::span<const Block> blocks, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
