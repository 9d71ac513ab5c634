#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/gnn/checkpoint.h"
#include "rhizome/gnn/learner.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

struct TrainingRunOptions {
  std::uint32_t epochs = 1;
  double learning_rate = 0.01;
  double weight_decay = 0;
  std::uint64_t seed = 1;
  std::string features;  ///< for messages

  /// Number of minibatches between two checkpoints; 0: none. Otherwise one is also written when the
  /// run is interrupted.
  std::uint64_t checkpoint_every = 0;
  Path checkpoint;  ///< path of the checkpoint
  std::string job;  ///< description of the job, as SaveCheckpoint takes it
};

/// Runs epochs over the minibatches of a loader, and keeps the weights of the best epoch. It can be
/// resumed from a checkpoint; the loader must then begin after the minibatches that are done.
/// Threads: one at a time.
/// Ownership: all arguments must outlive it.
class TrainingRun {
 public:
  TrainingRun(Model& model, const ClassLabels& labels, const TrainingRunOptions& options,
              const EpochPlan& plan, StageTrace* trace);

  /// Continues from a checkpoint. Errors: kCorruption, it is of another model or more epochs.
  Status Resume(const Checkpoint& checkpoint);

  /// Runs to the end; the model then has the best epoch's weights. Errors: of the pipeline;
  /// kInvalidArgument, a loss that is not a number; kInterrupted; those of SaveCheckpoint.
  Status Run(FeedPipeline& pipeline, const JobControl& control);

  const TrainProgress& progress() const { return progress_; }

 private:
  std::uint64_t batches() const { return plan_.train_batches() + plan_.valid_batches(); }
  Status Step(FeedPipeline& pipeline, const JobControl& control);
  void FinishEpoch();
  Status Save() const;
  Status Diverged() const;
  std::string Detail() const;

  Model& model_;
  const TrainingRunOptions options_;
  const EpochPlan& plan_;
  StageTrace* const trace_;
  Learner learner_;
  TrainProgress progress_;
  std::vector<torch::Tensor> best_weights_;
};

}  // namespace rhizome::inline internal
