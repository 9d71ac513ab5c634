#include "rhizome/gnn/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rhizome/storage/check.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome::inline internal {
namespace {

void Add(const BatchOutcome& outcome, BatchOutcome& sum) {
  sum.loss_sum += outcome.loss_sum;
  sum.seeds += outcome.seeds;
  sum.correct += outcome.correct;
}

double MeanLoss(const BatchOutcome& outcome) {
  return outcome.loss_sum / static_cast<double>(outcome.seeds);
}

}  // namespace

TrainingRun::TrainingRun(Model& model, const ClassLabels& labels, const TrainingRunOptions& options,
                         const EpochPlan& plan, StageTrace* trace)
    : model_(model),
      options_(options),
      plan_(plan),
      trace_(trace),
      learner_(model, labels, options.learning_rate, options.weight_decay, options.seed) {}

Status TrainingRun::Resume(const Checkpoint& checkpoint) {
  const std::vector<torch::Tensor> parameters = model_.CopyWeights();
  bool fits =
      checkpoint.weights.size() == parameters.size() &&
      (checkpoint.best_weights.empty() || checkpoint.best_weights.size() == parameters.size()) &&
      checkpoint.progress.done <= options_.epochs * batches();
  for (std::size_t i = 0; fits && i < parameters.size(); ++i) {
    fits = checkpoint.weights[i].sizes() == parameters[i].sizes() &&
           (checkpoint.best_weights.empty() ||
            checkpoint.best_weights[i].sizes() == parameters[i].sizes());
  }
  if (!fits) return Status::Corruption("the checkpoint is not of this model and these epochs");
  RHIZOME_RETURN_IF_ERROR(learner_.RestoreState(checkpoint.learner));
  model_.RestoreWeights(checkpoint.weights);
  best_weights_ = checkpoint.best_weights;
  progress_ = checkpoint.progress;
  return Status::Ok();
}

Status TrainingRun::Run(FeedPipeline& pipeline, const JobControl& control) {
  while (progress_.done < options_.epochs * batches()) {
    const Status status = Step(pipeline, control);
    // An interrupted run saves its progress, so that nothing is lost.
    const bool interrupted = status.code() == StatusCode::kInterrupted;
    const bool due = progress_.done % std::max<std::uint64_t>(options_.checkpoint_every, 1) == 0;
    if (options_.checkpoint_every > 0 && (interrupted || (status.ok() && due)))
      RHIZOME_RETURN_IF_ERROR(Save());
    RHIZOME_RETURN_IF_ERROR(status);
  }
  if (!best_weights_.empty()) model_.RestoreWeights(best_weights_);
  return Status::Ok();
}

Status TrainingRun::Step(FeedPipeline& pipeline, const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t number = progress_.done;
  EpochReport& epoch = progress_.current;
  const StageTimer wait(trace_, Stage::kWait, number);
  RHIZOME_ASSIGN_OR_RETURN(std::optional<Minibatch> minibatch, pipeline.Next());
  RHIZOME_CHECK(minibatch.has_value());  // the plan gives the pipeline as many
  epoch.stall_seconds += wait.Stop();
  const bool is_valid = EpochPlan::Decode(minibatch->tag).is_valid;
  const StageTimer compute(trace_, Stage::kCompute, number);
  const BatchOutcome outcome =
      is_valid ? learner_.Evaluate(*minibatch) : learner_.Learn(*minibatch);
  epoch.compute_seconds += compute.Stop();
  if (!std::isfinite(outcome.loss_sum)) return Diverged();
  Add(outcome, is_valid ? progress_.valid : progress_.train);
  epoch += minibatch->costs;
  epoch.loss = MeanLoss(progress_.train);
  epoch.seconds += watch.seconds();
  ++progress_.done;
  const std::string detail = Detail();
  if (progress_.done % batches() == 0) FinishEpoch();
  return control.Report({.phase = "train",
                         .done = progress_.done,
                         .total = options_.epochs * batches(),
                         .detail = detail});
}

void TrainingRun::FinishEpoch() {
  EpochReport epoch = std::exchange(progress_.current, {});
  const BatchOutcome valid = std::exchange(progress_.valid, {});
  progress_.train = {};
  double loss = 0;
  if (valid.seeds > 0) {
    epoch.valid_accuracy = static_cast<double>(valid.correct) / static_cast<double>(valid.seeds);
    loss = MeanLoss(valid);
  }
  progress_.epochs.push_back(epoch);
  // Without a validation set the last epoch is kept.
  const bool better =
      best_weights_.empty() || plan_.valid_batches() == 0 ||
      epoch.valid_accuracy > progress_.best_accuracy ||
      (epoch.valid_accuracy == progress_.best_accuracy && loss < progress_.best_loss);
  if (!better) return;
  best_weights_ = model_.CopyWeights();
  progress_.best_accuracy = epoch.valid_accuracy;
  progress_.best_loss = loss;
  progress_.best_epoch = static_cast<std::uint32_t>(progress_.epochs.size());
}

Status TrainingRun::Save() const {
  return SaveCheckpoint(options_.checkpoint, options_.job,
                        {.progress = progress_,
                         .weights = model_.CopyWeights(),
                         .best_weights = best_weights_,
                         .learner = learner_.CopyState()});
}

Status TrainingRun::Diverged() const {
  return Status::InvalidArgument(
      fmt::format("the loss of epoch {}, minibatch {} is not a number: look for NaN or huge "
                  "values in array {}, or try a smaller learning rate than {}",
                  progress_.done / batches() + 1, progress_.done % batches() + 1, options_.features,
                  options_.learning_rate));
}

/// Returns the text that progress shows about the current epoch.
std::string TrainingRun::Detail() const {
  const EpochReport& epoch = progress_.current;
  const auto rows = static_cast<double>(epoch.rows_requested);
  return fmt::format("loss {:.4f}, {:.0f} k rows/s, {:.0f} MB/s, {:.0f} % hits", epoch.loss,
                     rows / epoch.seconds / 1e3,
                     static_cast<double>(epoch.bytes_read) / epoch.seconds / 1e6,
                     100 * epoch.hit_rate());
}

}  // namespace rhizome::inline internal
