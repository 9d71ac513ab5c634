#pragma once

#include <cstdint>

#include "gnn/full_graph/step_plan.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Describes the plan of an epoch: a training step and an evaluation step. The evaluation step
/// counts in the totals only if epochs are `measured`. Leaves chunk_rows and memory_bytes to the
/// caller.
FullGraphReport DescribeSteps(const FullStepPlan& learn, const FullStepPlan& measure,
                              bool measured);

/// Returns the peak memory of passes and of chunks that stay in memory.
std::uint64_t PeakBytes(const FullStepPlan& learn, const FullStepPlan& measure);

}  // namespace internal
}  // namespace rhizome
