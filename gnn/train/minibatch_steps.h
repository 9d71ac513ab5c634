#pragma once

#include <optional>

#include "cache/feed/feed_pipeline.h"
#include "cache/feed/labels.h"
#include "gnn/train/device_feed.h"
#include "gnn/train/learned_rows.h"
#include "gnn/train/training_steps.h"

namespace rhizome {
inline namespace internal {

/// Training on minibatches, one step per minibatch. Runs on a device if there is a DeviceFeed and
/// the model is on the device; the next minibatch is then uploaded while the device processes the
/// current one.
/// Ownership: all arguments must outlive this object.
class MinibatchSteps final : public TrainingSteps {
 public:
  MinibatchSteps(Model& model, const Labels& labels, const LearnerOptions& options,
                 StageTrace* trace, DeviceFeed* device = nullptr, LearnedRows* learned = nullptr)
      : learner_(model, labels, options),
        model_(model),
        trace_(trace),
        device_(device),
        learned_(learned) {}

  /// Sets the source of minibatches, starting with the minibatch of the first step.
  void ReadFrom(FeedPipeline& pipeline) { pipeline_ = &pipeline; }

  Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink, EpochReport& epoch,
                            const JobControl& control) override;
  void SetLearningRate(double rate) override {
    learner_.SetLearningRate(rate);
    if (learned_ != nullptr) learned_->SetLearningRate(rate);
  }
  LearnerState CopyState() const override { return learner_.CopyState(); }
  Status RestoreState(const LearnerState& state) override { return learner_.RestoreState(state); }
  std::optional<Row> BadRow() const override { return bad_row_; }

 private:
  /// A minibatch whose inputs are on the device.
  struct Brought {
    Minibatch minibatch;
    LearnerInputs inputs;
  };
  Result<std::optional<Minibatch>> Next(const TrainingStep& step, EpochReport& epoch);
  Result<BatchOutcome> Compute(const TrainingStep& step, const Minibatch& minibatch,
                               VertexScoreSink* sink);
  Result<BatchOutcome> TakeOnDevice(const TrainingStep& step, VertexScoreSink* sink,
                                    EpochReport& epoch);
  Result<std::optional<Brought>> BringNext(const TrainingStep& step, EpochReport& epoch);

  Learner learner_;
  const Model& model_;
  StageTrace* const trace_;
  DeviceFeed* const device_;
  LearnedRows* const learned_;  // null: no type has learned rows
  FeedPipeline* pipeline_ = nullptr;
  Result<std::optional<Brought>> brought_ = std::optional<Brought>();  // for the next step
  std::optional<Row> bad_row_;
};

}  // namespace internal
}  // namespace rhizome
