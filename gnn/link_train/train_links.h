#pragma once

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Trains an encoder, a model of any kind, and a decoder on the edges of a store (Task::kLink).
/// Each minibatch has edges of one partition; its seeds are their ends and negatives, and the edges
/// themselves take no part in message passing. The model file has the weights of the decoder, too,
/// so that it serves as `decoder` of evaluations. With LinkTrainOptions::out_array, the rows of all
/// vertices are computed at the end, with all neighbours.
/// Errors: as TrainModel; kInvalidArgument, options that are for vertices with labels;
/// kUnsupported, `full_graph`, a device, ranks, or temporal sampling.
Result<TrainReport> TrainLinks(const TrainOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
