#include "gnn/ranks/rank_steps.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gnn/ranks/rank_layers.h"
#include "storage/base/check.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

/// Computes the next minibatch of this rank: its gradient, or its loss for validation.
Result<StepSum> RankSteps::TakeMinibatch(const TrainingStep& step, VertexScoreSink* sink,
                                         EpochReport& epoch) {
  const StageTimer wait(trace_, Stage::kWait, step.number);
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, pipeline_->Next());
  epoch.stall_seconds += wait.Stop();
  RHIZOME_CHECK(minibatch.has_value());  // it delivers the minibatches of HomeSeeds
  RHIZOME_CHECK(epochs_.Decode(minibatch->tag).is_valid == step.is_valid);
  const StageTimer compute(trace_, Stage::kCompute, step.number);
  MinibatchGradient part = step.is_valid ? learner_.Measure(*minibatch, *sink)
                                         : learner_.Differentiate(*minibatch, sink);
  epoch.compute_seconds += compute.Stop();
  epoch += minibatch->costs;
  return StepSum{.numbers = std::move(part.numbers),
                 .loss_sum = part.loss_sum,
                 .weight = part.weight,
                 .seeds = minibatch->seed_count,
                 .minibatches = 1};
}

Result<BatchOutcome> RankSteps::Take(const TrainingStep& step, VertexScoreSink* sink,
                                     EpochReport& epoch, const JobControl&) {
  const EpochCounts& counts = epochs_.counts();
  const std::uint64_t of_epoch = step.number - counts.Before(step.epoch);
  const std::uint64_t of_part = step.is_valid ? of_epoch - counts.train : of_epoch;
  const HomeRange own = tree_.own();
  for (std::uint32_t home = own.first; home < own.first + own.count; ++home) {
    StepSum of_home;
    if (epochs_.SeedsOf(home, step.is_valid, of_part) > 0) {
      RHIZOME_ASSIGN_OR_RETURN(of_home, TakeMinibatch(step, sink, epoch));
    }
    if (home == own.first) of_home.stops = controls_.asked.cancelled() ? 1 : 0;
    tree_.Add(std::move(of_home));
  }
  const Stopwatch waiting;
  RHIZOME_ASSIGN_OR_RETURN(StepSum sum, tree_.Finish(step.is_valid ? 0 : learner_.gradient_size()));
  wait_seconds_ += waiting.seconds();
  if (sum.stops > 0) controls_.shared.Cancel();
  if (!step.is_valid && std::isfinite(sum.loss_sum)) {
    const Stopwatch stepping;
    learner_.Step(
        {.numbers = std::move(sum.numbers), .loss_sum = sum.loss_sum, .weight = sum.weight},
        sum.minibatches);
    epoch.compute_seconds += stepping.seconds();
  }
  const double mean = sum.weight > 0 ? sum.loss_sum / sum.weight : sum.loss_sum;
  return BatchOutcome{.loss_sum = mean * static_cast<double>(sum.seeds), .seeds = sum.seeds};
}

/// Each rank has the scores of its own homes' vertices, and NaN in place of the others.
Status RankSteps::Share(ScoreTable& scores) { return ShareScores(transport_, scores); }

}  // namespace internal
}  // namespace rhizome
