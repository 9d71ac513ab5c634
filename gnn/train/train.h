#pragma once

#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Implements the verb `train`: trains a model out of core and writes it as safetensors. The
/// weights of the epoch with the best accuracy on the validation set are kept (ties: the lower loss
/// there). The reported accuracies are theirs, computed exactly, with all neighbours.
/// Errors: see GnnEntry; kInvalidArgument, no training vertex, a vertex of a set without label, or
/// a loss that is not a number; kOutOfMemory, the limit is too small.
Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
