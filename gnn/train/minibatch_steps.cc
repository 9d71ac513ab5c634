#include "rhizome/gnn/minibatch_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

/// Returns the first row of a minibatch with a feature that is no number.
std::optional<Row> BadRowOf(const Minibatch& minibatch) {
  const FeatureRows& features = minibatch.features;
  std::vector<float> row(features.rows() * features.dim());
  if (!features.CopyTo(row).ok()) return std::nullopt;
  const auto bad =
      std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
  if (bad == row.end()) return std::nullopt;
  return minibatch.rows[static_cast<std::size_t>(bad - row.begin()) / features.dim()];
}

}  // namespace

Result<BatchOutcome> MinibatchSteps::Take(const TrainingStep& step, VertexScoreSink* sink,
                                          EpochReport& epoch, const JobControl&) {
  const StageTimer wait(trace_, Stage::kWait, step.number);
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, pipeline_->Next());
  RHIZOME_CHECK(minibatch.has_value());  // the plan gives the pipeline as many
  epoch.stall_seconds += wait.Stop();
  RHIZOME_CHECK(EpochPlan::Decode(minibatch->tag).is_valid == step.is_valid);
  const StageTimer compute(trace_, Stage::kCompute, step.number);
  const BatchOutcome outcome =
      step.is_valid ? learner_.Evaluate(*minibatch, *sink) : learner_.Learn(*minibatch, sink);
  epoch.compute_seconds += compute.Stop();
  epoch += minibatch->costs;
  if (!std::isfinite(outcome.loss_sum)) bad_row_ = BadRowOf(*minibatch);
  return outcome;
}

}  // namespace rhizome::inline internal
