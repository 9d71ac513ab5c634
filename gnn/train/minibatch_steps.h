#pragma once

#include <optional>

#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/cache/labels.h"
#include "rhizome/gnn/device_feed.h"
#include "rhizome/gnn/training_steps.h"

namespace rhizome::inline internal {

/// The steps of a training on minibatches, one for each; on a device if they have a DeviceFeed and
/// the model is there. Then the next minibatch goes up while the device works on one.
/// Ownership: all arguments must outlive it.
class MinibatchSteps final : public TrainingSteps {
 public:
  MinibatchSteps(Model& model, const Labels& labels, const LearnerOptions& options,
                 StageTrace* trace, DeviceFeed* device = nullptr)
      : learner_(model, labels, options), model_(model), trace_(trace), device_(device) {}

  /// Sets where the minibatches come from, beginning with that of the first step.
  void ReadFrom(FeedPipeline& pipeline) { pipeline_ = &pipeline; }

  Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink, EpochReport& epoch,
                            const JobControl& control) override;
  void SetLearningRate(double rate) override { learner_.SetLearningRate(rate); }
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
  Result<BatchOutcome> TakeOnDevice(const TrainingStep& step, VertexScoreSink* sink,
                                    EpochReport& epoch);
  Result<std::optional<Brought>> BringNext(const TrainingStep& step, EpochReport& epoch);

  Learner learner_;
  const Model& model_;
  StageTrace* const trace_;
  DeviceFeed* const device_;
  FeedPipeline* pipeline_ = nullptr;
  Result<std::optional<Brought>> brought_ = std::optional<Brought>();  // of the next step
  std::optional<Row> bad_row_;
};

}  // namespace rhizome::inline internal
