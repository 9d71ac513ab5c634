#pragma once

#include <cstdint>

#include "rhizome/gnn/step_plan.h"
#include "rhizome/gnn/train_options.h"

namespace rhizome::inline internal {

/// Describes the plan of an epoch: a step to learn, and one to measure, which counts only if epochs
/// are `measured`. Without chunk_rows and memory_bytes.
FullGraphReport DescribeSteps(const FullStepPlan& learn, const FullStepPlan& measure,
                              bool measured);

/// Returns the most memory that passes and the chunks that stay take at once.
std::uint64_t PeakBytes(const FullStepPlan& learn, const FullStepPlan& measure);

}  // namespace rhizome::inline internal
