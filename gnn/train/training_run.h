#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/score_table.h"
#include "rhizome/gnn/checkpoint.h"
#include "rhizome/gnn/schedule.h"
#include "rhizome/gnn/training_steps.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

struct TrainingRunOptions {
  std::uint32_t epochs = 1;
  LearnerOptions learner = {};
  ScheduleOptions schedule = {};
  Metric monitor = Metric::kAccuracy;
  std::uint32_t patience = 0;  ///< as TrainOptions
  double min_delta = 0;
  bool train_metrics = false;  ///< as TrainOptions
  std::string features;        ///< for messages

  /// Number of minibatches between two checkpoints; 0: none. Otherwise one is also written when the
  /// run is interrupted, and with `checkpoint_at_end` when it ends.
  std::uint64_t checkpoint_every = 0;
  bool checkpoint_at_end = false;
  Path checkpoint;  ///< path of the checkpoint; empty: another rank writes it
  std::string job;  ///< description of the job, as SaveCheckpoint takes it

  /// Called when an epoch is the best so far; the model has its weights.
  std::function<Status(const TrainProgress&)> on_best;
  std::function<void(std::string)> warn;           ///< told of a likely mistake
  std::function<std::string(Row)> name_of_vertex;  ///< for messages

  /// Names the first vertex of the graph with features that are NaN or infinite, if there is one,
  /// for steps that do not know it (TrainingSteps::BadRow). May be empty.
  std::function<std::optional<std::string>()> find_bad_vertex = {};
};

/// Runs the steps of all epochs, and keeps the weights of the best epoch. It can be resumed from a
/// checkpoint; the steps must then begin after those that are done.
/// Threads: one at a time.
/// Ownership: all arguments must outlive it.
class TrainingRun {
 public:
  TrainingRun(Model& model, const Labels& labels, TrainingRunOptions options,
              const EpochCounts& plan, TrainingSteps& steps);

  /// Continues from a checkpoint. Errors: kCorruption, it is of another model or more epochs.
  Status Resume(const Checkpoint& checkpoint);

  /// Runs to the last epoch, or until StopsEarly says so; the model then has the best epoch's
  /// weights. Errors: those of a step; kInvalidArgument, a loss that is not a number, or a
  /// monitored metric that is undefined; kInterrupted; those of SaveCheckpoint and `on_best`.
  Status Run(const JobControl& control);

  const TrainProgress& progress() const { return progress_; }

  /// Whether patience ended it before the last epoch.
  bool stopped_early() const;

  /// Writes a checkpoint, if it has a path. Errors: those of SaveCheckpoint.
  Status Save();

 private:
  bool AtEnd() const;
  Improvement better() const;
  std::vector<std::optional<double>> History() const;
  void BeginEpoch();
  Status Step(const JobControl& control);
  Status MeasureEpoch(EpochReport& epoch);
  Status MeasureTrain(EpochReport& epoch);
  Status FinishEpoch();
  void WarnOfLoss(const EpochReport& epoch);
  Status Diverged() const;
  std::string Detail() const;

  Model& model_;
  const TrainingRunOptions options_;
  const EpochCounts plan_;
  TrainingSteps& steps_;
  ScoreTable valid_;
  std::optional<ScoreTable> train_;  // if the training set's metrics are wanted
  TrainProgress progress_;
  std::vector<torch::Tensor> best_weights_;
  bool warned_ = false;
};

}  // namespace rhizome::inline internal
