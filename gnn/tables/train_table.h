#pragma once

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Trains a table (LinkTrainOptions) on the edges of a store. The rows are in the job's folder, in
/// the order in which the batches need them; a TableCache holds as many as the memory allows. The
/// rows do not depend on memory or threads, nor on interruptions (JobOptions::checkpoint_every,
/// resume). Errors: kInvalidArgument, naming the option; kOutOfMemory, `memory_bytes` holds no
/// cached row beside the rows of two batches; kOutOfSpace, the job's disk has less than
/// RowTable::DiskBytes free; kAlreadyExists, the store has an array `out_array`; kInterrupted;
/// errors of the store.
Result<TrainReport> TrainTable(const TrainOptions& options, const JobControl& control);

/// Describes the model "table".
ModelInfo DescribeTableModel();

}  // namespace internal
}  // namespace rhizome
