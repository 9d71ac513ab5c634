#include "gnn/train/minibatch_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cache/feed/epoch_plan.h"
#include "gnn/ops/torch_guard.h"
#include "storage/base/check.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns the number of the first row of features that has a value that is not finite.
std::optional<std::size_t> BadRowIn(const FeatureRows& features) {
  std::vector<float> row(features.rows() * features.dim());
  if (!features.CopyTo(row).ok()) return std::nullopt;
  const auto bad =
      std::find_if_not(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
  if (bad == row.end()) return std::nullopt;
  return static_cast<std::size_t>(bad - row.begin()) / features.dim();
}

/// Returns the row of a vertex of a minibatch with a feature that is not finite.
std::optional<Row> BadRowOf(const Minibatch& minibatch) {
  for (const MinibatchInput& input : minibatch.inputs)
    if (const auto bad = BadRowIn(input.features)) return minibatch.rows[input.vertices[*bad]];
  if (!minibatch.inputs.empty()) return std::nullopt;
  if (const auto bad = BadRowIn(minibatch.features)) return minibatch.rows[*bad];
  return std::nullopt;
}

/// As above for features on a device.
std::optional<Row> BadRowOf(const Minibatch& minibatch, const torch::Tensor& features) {
  const torch::Tensor good = features.isfinite().all(1).to(torch::kCPU).contiguous();
  const bool* const begin = good.data_ptr<bool>();
  const bool* const bad = std::find(begin, begin + good.numel(), false);
  if (bad == begin + good.numel()) return std::nullopt;
  return minibatch.rows[static_cast<std::size_t>(bad - begin)];
}

}  // namespace

Result<std::optional<Minibatch>> MinibatchSteps::Next(const TrainingStep& step,
                                                      EpochReport& epoch) {
  const StageTimer wait(trace_, Stage::kWait, step.number);
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, pipeline_->Next());
  epoch.stall_seconds += wait.Stop();
  return minibatch;
}

Result<BatchOutcome> MinibatchSteps::Take(const TrainingStep& step, VertexScoreSink* sink,
                                          EpochReport& epoch, const JobControl&) {
  if (device_ != nullptr) {
    return GuardedTorch([&] { return TakeOnDevice(step, sink, epoch); });
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<Minibatch> minibatch, Next(step, epoch));
  RHIZOME_CHECK(minibatch.has_value());  // the plan delivers one per step
  RHIZOME_CHECK(EpochPlan::Decode(minibatch->tag).is_valid == step.is_valid);
  const StageTimer compute(trace_, Stage::kCompute, step.number);
  RHIZOME_ASSIGN_OR_RETURN(const BatchOutcome outcome, Compute(step, *minibatch, sink));
  epoch.compute_seconds += compute.Stop();
  epoch += minibatch->costs;
  if (!std::isfinite(outcome.loss_sum)) bad_row_ = BadRowOf(*minibatch);
  return outcome;
}

Result<BatchOutcome> MinibatchSteps::Compute(const TrainingStep& step, const Minibatch& minibatch,
                                             VertexScoreSink* sink) {
  std::vector<LearnedTable>* tables = nullptr;
  if (learned_ != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(tables, learned_->Acquire(minibatch));
  }
  const BatchOutcome outcome = step.is_valid ? learner_.Evaluate(minibatch, *sink, tables)
                                             : learner_.Learn(minibatch, sink, tables);
  if (learned_ == nullptr) return outcome;
  // A loss that is not a number ends the training before the rows change.
  if (!step.is_valid && std::isfinite(outcome.loss_sum))
    RHIZOME_RETURN_IF_ERROR(learned_->Update());
  RHIZOME_RETURN_IF_ERROR(learned_->Release());
  return outcome;
}

Result<std::optional<MinibatchSteps::Brought>> MinibatchSteps::BringNext(const TrainingStep& step,
                                                                         EpochReport& epoch) {
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, Next(step, epoch));
  if (!minibatch) return std::optional<Brought>();
  Brought brought{.minibatch = *std::move(minibatch), .inputs = {}};
  RHIZOME_ASSIGN_OR_RETURN(brought.inputs,
                           device_->Bring(brought.minibatch, model_.MakeGraphs(brought.minibatch)));
  return std::optional(std::move(brought));
}

// Steps:
// 1. Use the minibatch that the previous step has uploaded, or upload the first one.
// 2. Queue its computation on the device, and release its feature rows behind it.
// 3. Upload the next minibatch while the device computes.
// 4. Wait for the result.
Result<BatchOutcome> MinibatchSteps::TakeOnDevice(const TrainingStep& step, VertexScoreSink* sink,
                                                  EpochReport& epoch) {
  RHIZOME_RETURN_IF_ERROR(brought_);
  if (!*brought_) {
    brought_ = BringNext(step, epoch);
    RHIZOME_RETURN_IF_ERROR(brought_);
  }
  RHIZOME_CHECK(brought_->has_value());  // the plan delivers one per step
  const Brought now = std::move(**brought_);
  const Minibatch& minibatch = now.minibatch;
  RHIZOME_CHECK(EpochPlan::Decode(minibatch.tag).is_valid == step.is_valid);
  Stopwatch compute;
  const Learner::Begun begun = step.is_valid ? learner_.BeginEvaluating(minibatch, now.inputs)
                                             : learner_.BeginLearning(minibatch, now.inputs);
  RHIZOME_RETURN_IF_ERROR(device_->Release());
  epoch.compute_seconds += compute.seconds();
  // An error here is returned by the step that needs the minibatch.
  brought_ = BringNext(step, epoch);
  device_->AddTo(epoch);
  const StageTimer waiting(trace_, Stage::kCompute, step.number);
  const BatchOutcome outcome = Learner::Finish(minibatch, begun, sink);
  const double waited = waiting.Stop();
  epoch.device_wait_seconds += waited;
  epoch.compute_seconds += waited;
  epoch += minibatch.costs;
  if (!std::isfinite(outcome.loss_sum)) bad_row_ = BadRowOf(minibatch, now.inputs.features.table);
  return outcome;
}

}  // namespace internal
}  // namespace rhizome
