#include "rhizome/gnn/minibatch_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {

Result<BatchOutcome> MinibatchSteps::Take(const TrainingStep& step, VertexScoreSink* sink,
                                          EpochReport& epoch, const JobControl&) {
  minibatch_.reset();
  const StageTimer wait(trace_, Stage::kWait, step.number);
  RHIZOME_ASSIGN_OR_RETURN(minibatch_, pipeline_->Next());
  RHIZOME_CHECK(minibatch_.has_value());  // the plan gives the pipeline as many
  epoch.stall_seconds += wait.Stop();
  RHIZOME_CHECK(EpochPlan::Decode(minibatch_->tag).is_valid == step.is_valid);
  const StageTimer compute(trace_, Stage::kCompute, step.number);
  const BatchOutcome outcome =
      step.is_valid ? learner_.Evaluate(*minibatch_, *sink) : learner_.Learn(*minibatch_, sink);
  epoch.compute_seconds += compute.Stop();
  epoch += minibatch_->costs;
  return outcome;
}

std::optional<Row> MinibatchSteps::BadRow() const {
  const FeatureRows& features = minibatch_->features;
  std::vector<float> row(features.rows() * features.dim());
  if (!features.CopyTo(row).ok()) return std::nullopt;
  const auto bad =
      std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
  if (bad == row.end()) return std::nullopt;
  return minibatch_->rows[static_cast<std::size_t>(bad - row.begin()) / features.dim()];
}

}  // namespace rhizome::inline internal
