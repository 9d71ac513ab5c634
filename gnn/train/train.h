#pragma once

#include <cstdint>
#include <functional>

#include "cache/feed/feed_profile.h"
#include "gnn/ops/compute_device.h"
#include "gnn/train/learned_rows.h"
#include "gnn/train/objective.h"
#include "gnn/train/train_job.h"
#include "gnn/train/training_run.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Arguments of one training run of a job, with one seed. All are borrowed.
struct OneTraining {
  TrainJob& job;
  const TrainOptions& options;
  const Path& scratch;                               ///< the job's scratch folder
  const TrainingRunOptions run;                      ///< includes checkpoint and best model
  const std::function<std::uint64_t()>& held_bytes;  ///< memory before the first training run
  TrainReport& report;
  const JobControl& control;
  const ComputeDevice* device = nullptr;  ///< null: the CPU
  LearnedRows* learned = nullptr;         ///< null: no vertex type has learned rows
};

/// The minibatches of a training run.
struct TrainingSeeds {
  EpochCounts counts;
  SeedStream stream;  ///< from the first minibatch, to plan the memory

  /// Returns the minibatches after the first `done`. It is called once.
  std::function<FeedPipeline::NextSeeds(std::uint64_t done)> after;
};

/// Trains with one seed on the CPU, with an objective instead of a task's loss, and completes the
/// report. Errors: see TrainModel.
Status TrainOnSeeds(const OneTraining& one, const TrainingSeeds& seeds, Objective& objective);

/// Trains and measures with one seed, and completes the report.
using TrainOnce = std::function<Status(const OneTraining& one)>;

/// Steps of a TrainOnce. ResumeTraining continues from the checkpoint, if requested and present.
/// TakeProgress copies the epochs to the report, also for a run that failed. FinishTraining writes
/// the best model. Errors: as LoadCheckpoint, TrainingRun::Resume and BestModel::Offer.
Status ResumeTraining(const OneTraining& one, TrainingRun& run);
void TakeProgress(const TrainingRun& run, TrainReport& report);
Status FinishTraining(const OneTraining& one, const TrainingRun& run);

/// Implements the verb `train`: trains a model out of core and writes it as safetensors. Keeps the
/// weights of the epoch with the best monitored metric on the validation set (ties: the lower loss
/// there). The reported metrics are computed from these weights, exactly, with all neighbours.
/// Errors: see GnnEntry; kInvalidArgument, no training vertex, a vertex of a set without label, or
/// a loss that is not a number; kOutOfMemory, the limit is too small; kUnsupported, the requested
/// device is not available. `open` opens that device.
Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control,
                               const ComputeDeviceFactory& open = OpenCudaComputeDevice);

/// As above, with a custom training loop.
Result<TrainReport> TrainModel(const TrainOptions& options, const TrainOnce& once,
                               const JobControl& control,
                               const ComputeDeviceFactory& open = OpenCudaComputeDevice);

/// As above, for a job without labels, which `prepare` completes (OpenTrainJob).
Result<TrainReport> TrainModel(const TrainOptions& options, const TrainOnce& once,
                               const PrepareJob& prepare, const JobControl& control,
                               const ComputeDeviceFactory& open = OpenCudaComputeDevice);

}  // namespace internal
}  // namespace rhizome
