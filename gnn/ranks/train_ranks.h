#pragma once

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Trains as one of the ranks of options.transport. All ranks make this call, with equal options.
/// The unit of work is a home of the store (HomeEpochs): a rank has consecutive homes, with their
/// rows and training vertices, and fetches other rows from the ranks that have them. The learnt
/// weights do not depend on the number of ranks, bitwise with one thread.
///
/// Rank 0 writes checkpoints and the model file, and reports. At the end all ranks evaluate the
/// kept weights, each a part of every layer. The reports of other ranks hold their own epochs. A
/// rank that fails notifies the others, which fail with it. Every rank has its own folder in the
/// store's scratch folder, named after the job and the rank.
/// Errors: errors of TrainModel; kInvalidArgument, the ranks disagree on the store, its state, the
/// build or the options (the message names both sides), or there are more ranks than homes;
/// kIoError, a rank is lost; errors of other ranks.
Result<TrainReport> TrainOverRanks(const TrainOptions& options, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
