#pragma once

#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Implements the verb `train` on the full graph (TrainOptions::full_graph): every epoch is one
/// step down the exact gradient of the loss over the whole training set. Losses, weights and
/// metrics have the same bits for any memory limit and number of threads, and after a kill and a
/// resume. Errors: those of TrainModel; kInvalidArgument, a network that cannot be trained so
/// (CheckFullGraph), or options that are for minibatches; kOutOfSpace.
Result<TrainReport> TrainFullGraph(const TrainOptions& options, const JobControl& control);

/// Says how such a training would go; computes and writes nothing. Errors: those of TrainFullGraph
/// before it computes.
Result<FullGraphReport> PlanFullTraining(const TrainOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
