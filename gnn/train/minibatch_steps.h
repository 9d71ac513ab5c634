#pragma once

#include <optional>

#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/cache/labels.h"
#include "rhizome/gnn/training_steps.h"

namespace rhizome::inline internal {

/// The steps of a training on minibatches, one for each.
/// Ownership: all arguments must outlive it.
class MinibatchSteps final : public TrainingSteps {
 public:
  MinibatchSteps(Model& model, const Labels& labels, const LearnerOptions& options,
                 StageTrace* trace)
      : learner_(model, labels, options), trace_(trace) {}

  /// Sets where the minibatches come from, beginning with that of the first step.
  void ReadFrom(FeedPipeline& pipeline) { pipeline_ = &pipeline; }

  Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink, EpochReport& epoch,
                            const JobControl& control) override;
  void SetLearningRate(double rate) override { learner_.SetLearningRate(rate); }
  LearnerState CopyState() const override { return learner_.CopyState(); }
  Status RestoreState(const LearnerState& state) override { return learner_.RestoreState(state); }
  std::optional<Row> BadRow() const override { return bad_row_; }

 private:
  Learner learner_;
  StageTrace* const trace_;
  FeedPipeline* pipeline_ = nullptr;
  std::optional<Row> bad_row_;
};

}  // namespace rhizome::inline internal
