#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "cache/feed/score_table.h"
#include "cache/feed/vertex_score_sink.h"
#include "gnn/train/learner.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// A step of a training run: on the training set, to learn, or on the validation set, to measure.
struct TrainingStep {
  std::uint64_t number = 0;  ///< over all epochs
  std::uint32_t epoch = 0;   ///< from 0
  bool is_valid = false;
  std::span<float> kept = {};  ///< scores kept by the sink, saved and restored with partial steps

  /// Writes a checkpoint of the state before this step. Errors: as SaveCheckpoint.
  std::function<Status()> checkpoint = {};
};

/// Learning and measuring steps of a TrainingRun, by minibatches or on a whole graph at once.
/// Threads: one at a time.
class TrainingSteps {
 public:
  virtual ~TrainingSteps() = default;

  /// Performs the next step. The scores of its vertices are passed to `sink`, if it is not null,
  /// and its costs are added to `epoch`. Errors: reading fails; kInterrupted.
  virtual Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink,
                                    EpochReport& epoch, const JobControl& control) = 0;

  /// For training over ranks: completes the scores that this process's steps have passed to sinks
  /// with the scores of the other ranks. Errors: a rank is lost.
  virtual Status Share(ScoreTable&) { return Status::Ok(); }

  virtual void SetLearningRate(double rate) = 0;

  /// As Learner::CopyState and Learner::RestoreState.
  virtual LearnerState CopyState() const = 0;
  virtual Status RestoreState(const LearnerState& state) = 0;

  /// Returns a row of the last step whose features are not finite; nullopt if there is none, or it
  /// is not known.
  virtual std::optional<Row> BadRow() const { return std::nullopt; }
};

}  // namespace internal
}  // namespace rhizome
