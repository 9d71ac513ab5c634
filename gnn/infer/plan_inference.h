#pragma once

#include "rhizome/gnn/infer_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Implements the verb `plan infer`: counts what InferArray would read. Errors: those of InferArray
/// before it computes.
Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
