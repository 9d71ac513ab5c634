#pragma once

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Implements the verb `train` on the full graph (FullGraphOptions): every epoch is one
/// step along the exact gradient of the loss over the whole training set. Losses, weights and
/// metrics are bitwise equal for any memory limit and number of threads, and after a kill and a
/// resume. Errors: errors of TrainModel; kInvalidArgument, a network that cannot be trained on the
/// full graph (CheckFullGraph), or options that are for minibatches; kOutOfSpace.
Result<TrainReport> TrainFullGraph(const TrainOptions& options, const JobControl& control);

/// Returns the plan of such a training, with estimated times (EstimateTimes). Trains nothing and
/// leaves no files. Errors: errors of TrainFullGraph before its first pass.
Result<FullGraphReport> PlanFullTraining(const TrainOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
