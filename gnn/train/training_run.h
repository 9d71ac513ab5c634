#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/score_table.h"
#include "gnn/train/checkpoint.h"
#include "gnn/train/schedule.h"
#include "gnn/train/training_steps.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

struct TrainingRunOptions {
  LearnerOptions learner;  ///< with the LearningOptions of the run
  Metric monitor = Metric::kAccuracy;
  std::string features = {};  ///< for messages

  /// Number of minibatches between two checkpoints; 0: none. Otherwise a checkpoint is also written
  /// when the run is interrupted, and with `checkpoint_at_end` when it ends.
  std::uint64_t checkpoint_every = 0;
  bool checkpoint_at_end = false;
  Path checkpoint = {};  ///< empty: another rank writes it
  std::string job = {};  ///< description of the job for SaveCheckpoint

  /// Stores a checkpoint instead of SaveCheckpoint. May be empty.
  std::function<Status(const Checkpoint&)> save = {};

  /// Whether the last epoch counts as the best, because rows of earlier ones are not kept.
  bool keep_last = false;

  /// Called when an epoch is the best so far. The model has its weights.
  std::function<Status(const TrainProgress&)> on_best = {};
  std::function<void(std::string)> warn = {};           ///< receives warnings of likely mistakes
  std::function<std::string(Row)> name_of_vertex = {};  ///< for messages

  /// Returns the name of the first vertex of the graph with NaN or infinite features, if any. Used
  /// if the steps do not know such a row (TrainingSteps::BadRow). May be empty.
  std::function<std::optional<std::string>()> find_bad_vertex = {};

  /// Returns a sentence about inputs that are finite and can make the loss infinite or NaN, if any
  /// (ExtremeInputs). May be empty.
  std::function<std::optional<std::string>()> find_extreme_inputs = {};
};

/// Runs the steps of all epochs, and keeps the weights of the best epoch. Can be resumed from a
/// checkpoint; the steps must then start after those already done.
/// Threads: one at a time.
/// Ownership: all arguments must outlive this object.
class TrainingRun {
 public:
  TrainingRun(Model& model, const Labels& labels, TrainingRunOptions options,
              const EpochCounts& plan, TrainingSteps& steps);

  /// Continues from a checkpoint. Errors: kCorruption, it belongs to another model, or has more
  /// epochs.
  Status Resume(const Checkpoint& checkpoint);

  /// Runs to the last epoch, or until StopsEarly returns true. The model then has the best epoch's
  /// weights. Errors: as TrainingSteps::Take; kInvalidArgument, the loss is not a number, or the
  /// monitored metric is undefined; kInterrupted; as SaveCheckpoint and `on_best`.
  Status Run(const JobControl& control);

  const TrainProgress& progress() const { return progress_; }

  /// Whether patience ended the run before the last epoch.
  bool stopped_early() const;

  /// Writes a checkpoint, if there is a path for it. Errors: as SaveCheckpoint.
  Status Save();

 private:
  const LearningOptions& learning() const { return options_.learner.learning; }
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
  std::optional<ScoreTable> train_;  // only if metrics of the training set are requested
  TrainProgress progress_;
  std::vector<torch::Tensor> best_weights_;
  bool warned_ = false;
};

}  // namespace internal
}  // namespace rhizome
