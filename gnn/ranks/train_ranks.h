#pragma once

#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Trains as one of the ranks of options.transport, all of which make this call with equal options.
/// A home of the store is the unit of work (HomeEpochs); a rank has consecutive homes, their rows
/// and their training vertices, and fetches other rows from the ranks that have them. What is
/// learnt does not depend on the number of ranks, to the bit with one thread.
///
/// Rank 0 writes checkpoints and the model file, and reports; all measure the kept weights at the
/// end, each a part of every layer. The reports of others have their own epochs. A rank that fails
/// tells the others, which fail with it. Every rank opens a folder of its own in the store's
/// scratch, named after the job and the rank. Errors: those of TrainModel; kInvalidArgument, the
/// ranks disagree on the store, its state, the build or the options (both sides are named), or
/// there are more ranks than homes; kIoError, a rank is lost; those of other ranks.
Result<TrainReport> TrainOverRanks(const TrainOptions& options, const JobControl& control);

}  // namespace rhizome::inline internal
