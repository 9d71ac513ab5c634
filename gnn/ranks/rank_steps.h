#pragma once

#include <cstdint>
#include <optional>

#include "cache/feed/feed_pipeline.h"
#include "cache/feed/labels.h"
#include "cache/job/stage_trace.h"
#include "cache/ranks/home_epochs.h"
#include "gnn/ranks/home_tree.h"
#include "gnn/train/training_steps.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// The steps of a training over ranks. In each step every home has a minibatch. The gradients are
/// added up over all ranks, and all ranks take the same step. The learnt weights are the same for
/// any number of ranks, bitwise with one thread.
///
/// A rank that is asked to stop says so in the message of the step, and all ranks stop after the
/// same step.
/// Threads: one at a time. Ownership: all arguments must outlive it.
class RankSteps final : public TrainingSteps {
 public:
  struct Controls {
    const JobControl& asked;  ///< the caller's, which asks this rank to stop
    /// Cancelled when the ranks agree to stop; the run and the pipeline obey it.
    JobControl& shared;
  };

  /// `trace`: records when this rank waits and computes; may be null.
  RankSteps(Model& model, const Labels& labels, const LearnerOptions& options,
            const HomeEpochs& epochs, Transport& transport, const Controls& controls,
            StageTrace* trace)
      : learner_(model, labels, options),
        epochs_(epochs),
        transport_(transport),
        tree_(&transport, epochs.homes()),
        controls_(controls),
        trace_(trace) {}

  /// Sets the pipeline that delivers this rank's minibatches, beginning with the first step that is
  /// taken.
  void ReadFrom(FeedPipeline& pipeline) { pipeline_ = &pipeline; }

  HomeRange homes() const { return tree_.own(); }

  Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink, EpochReport& epoch,
                            const JobControl& control) override;
  Status Share(ScoreTable& scores) override;
  void SetLearningRate(double rate) override { learner_.SetLearningRate(rate); }
  LearnerState CopyState() const override { return learner_.CopyState(); }
  Status RestoreState(const LearnerState& state) override { return learner_.RestoreState(state); }

  /// Returns the seconds that this rank has waited for the others at the end of steps.
  double wait_seconds() const { return wait_seconds_; }

 private:
  Result<StepSum> TakeMinibatch(const TrainingStep& step, VertexScoreSink* sink,
                                EpochReport& epoch);

  Learner learner_;
  const HomeEpochs& epochs_;
  Transport& transport_;
  HomeTree tree_;
  const Controls controls_;
  StageTrace* const trace_;
  FeedPipeline* pipeline_ = nullptr;
  double wait_seconds_ = 0;
};

}  // namespace internal
}  // namespace rhizome
