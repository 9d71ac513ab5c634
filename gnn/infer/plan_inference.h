#pragma once

#include "rhizome/gnn/infer_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The verb `plan infer`: what InferArray would read. Errors: those of InferArray before it
/// computes.
Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
