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

  /// Minibatches; 0: never. Otherwise also when the run is interrupted.
  std::uint64_t checkpoint_every = 0;
  Path checkpoint;  ///< the file
  std::string job;  ///< what it is a checkpoint of
};

/// Runs epochs over what a pipeline delivers, and keeps the weights of the best one. Can be resumed
/// from a checkpoint: the pipeline must then begin behind the minibatches that are done.
/// Threads: one at a time. Ownership: all that is given must outlive it.
class TrainingRun {
 public:
  TrainingRun(Model& model, const ClassLabels& labels, const TrainingRunOptions& options,
              const EpochPlan& plan, StageTrace* trace);

  /// Errors: kCorruption, a checkpoint of another model.
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
