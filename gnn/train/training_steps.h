#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "rhizome/cache/score_table.h"
#include "rhizome/cache/vertex_score_sink.h"
#include "rhizome/gnn/learner.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A step of a training: of the training set, to learn, or of the validation set, to measure.
struct TrainingStep {
  std::uint64_t number = 0;  ///< over all epochs
  std::uint32_t epoch = 0;   ///< from 0
  bool is_valid = false;
  std::span<float> kept = {};  ///< what the sink keeps of the step: to save, and to go on with

  /// Writes a checkpoint of what was before this step. Errors: those of SaveCheckpoint.
  std::function<Status()> checkpoint = {};
};

/// The learning and measuring of a TrainingRun: minibatch by minibatch, or of a whole graph at
/// once. Threads: one at a time.
class TrainingSteps {
 public:
  virtual ~TrainingSteps() = default;

  /// Takes a step, the one after that of the call before. The scores of its vertices go to `sink`,
  /// if that is not null, and its costs are added to `epoch`. Errors: those of reading;
  /// kInterrupted.
  virtual Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink,
                                    EpochReport& epoch, const JobControl& control) = 0;

  /// Completes scores that were given to the sinks of this process's steps with those of others; of
  /// a training over ranks. Errors: a rank is lost.
  virtual Status Share(ScoreTable&) { return Status::Ok(); }

  virtual void SetLearningRate(double rate) = 0;

  /// As Learner has them.
  virtual LearnerState CopyState() const = 0;
  virtual Status RestoreState(const LearnerState& state) = 0;

  /// A row whose features are no numbers, of those that the last step read; nothing: none, or it is
  /// not known.
  virtual std::optional<Row> BadRow() const { return std::nullopt; }
};

}  // namespace rhizome::inline internal
