#pragma once

#include <cstdint>
#include <functional>

#include "rhizome/gnn/compute_device.h"
#include "rhizome/gnn/train_job.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/gnn/training_run.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// One training of a job, with one seed. All is borrowed.
struct OneTraining {
  TrainJob& job;
  const TrainOptions& options;
  const Path& scratch;                               ///< the job's folder
  const TrainingRunOptions run;                      ///< with checkpoint and best model
  const std::function<std::uint64_t()>& held_bytes;  ///< of memory, before the first training
  TrainReport& report;
  const JobControl& control;
  const ComputeDevice* device = nullptr;  ///< null: the processor
};

/// Trains and measures with one seed, and completes the report.
using TrainOnce = std::function<Status(const OneTraining& one)>;

/// Steps of a TrainOnce. ResumeTraining goes on from the checkpoint, if that is asked for and there
/// is one; TakeProgress takes what there is to report, also of a run that failed; FinishTraining
/// writes the best model. Errors: those of LoadCheckpoint, TrainingRun::Resume and
/// BestModel::Offer.
Status ResumeTraining(const OneTraining& one, TrainingRun& run);
void TakeProgress(const TrainingRun& run, TrainReport& report);
Status FinishTraining(const OneTraining& one, const TrainingRun& run);

/// Implements the verb `train`: trains a model out of core and writes it as safetensors. The
/// weights of the epoch with the best accuracy on the validation set are kept (ties: the lower loss
/// there). The reported accuracies are theirs, computed exactly, with all neighbours.
/// Errors: see GnnEntry; kInvalidArgument, no training vertex, a vertex of a set without label, or
/// a loss that is not a number; kOutOfMemory, the limit is too small; kUnsupported, the device that
/// is asked for cannot be had. `open` makes that device.
Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control,
                               const ComputeDeviceMaker& open = OpenCudaComputeDevice);

/// The same, but for how a training is done.
Result<TrainReport> TrainModel(const TrainOptions& options, const TrainOnce& once,
                               const JobControl& control,
                               const ComputeDeviceMaker& open = OpenCudaComputeDevice);

}  // namespace rhizome::inline internal
