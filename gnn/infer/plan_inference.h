#pragma once

#include "rhizome/gnn/infer_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Implements the verb `plan infer`: counts the reads of InferArray. Errors: the errors that
/// InferArray returns before it computes.
Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
