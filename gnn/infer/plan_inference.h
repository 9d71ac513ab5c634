#pragma once

#include "rhizome/infer_options.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Implements the verb `plan infer`: counts the reads of InferArray. Errors: the errors that
/// InferArray returns before it computes.
Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
