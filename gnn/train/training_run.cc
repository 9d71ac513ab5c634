#include "gnn/train/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "cache/job/process_memory.h"
#include "storage/base/mutant.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Factor over the first epoch's loss beyond which a loss causes a warning.
constexpr double kLossBeyondReason = 10;

void Add(const BatchOutcome& outcome, BatchOutcome& sum) {
  sum.loss_sum += outcome.loss_sum;
  sum.seeds += outcome.seeds;
  sum.metric_sum += outcome.metric_sum;
}

double MeanLoss(const BatchOutcome& outcome) {
  return outcome.loss_sum / static_cast<double>(std::max<std::uint64_t>(outcome.seeds, 1));
}

torch::Tensor TensorOf(const ScoreTable& scores) {
  return torch::tensor(at::ArrayRef<float>(scores.kept().data(), scores.kept().size()));
}

bool Fits(const torch::Tensor& saved, const ScoreTable& scores) {
  return !saved.defined() || static_cast<std::size_t>(saved.numel()) == scores.kept().size();
}

void Restore(const torch::Tensor& saved, ScoreTable& scores) {
  std::memcpy(scores.kept().data(), saved.data_ptr<float>(), scores.kept().size_bytes());
}

}  // namespace

TrainingRun::TrainingRun(Model& model, const Labels& labels, TrainingRunOptions options,
                         const EpochCounts& plan, TrainingSteps& steps)
    : model_(model),
      options_(std::move(options)),
      plan_(plan),
      steps_(steps),
      valid_(labels, Split::kValid) {
  if (learning().train_metrics) train_.emplace(labels, Split::kTrain);
}

Status TrainingRun::Resume(const Checkpoint& checkpoint) {
  const std::vector<torch::Tensor> now = model_.CopyWeights();
  const auto fits_model = [&](const std::vector<torch::Tensor>& weights) {
    return std::equal(now.begin(), now.end(), weights.begin(), weights.end(),
                      [](const auto& a, const auto& b) { return a.sizes() == b.sizes(); });
  };
  const bool fits = fits_model(checkpoint.weights) &&
                    (checkpoint.best_weights.empty() || fits_model(checkpoint.best_weights)) &&
                    Fits(checkpoint.valid_scores, valid_) &&
                    (!train_ || Fits(checkpoint.train_scores, *train_)) &&
                    checkpoint.progress.done <= plan_.all();
  if (!fits)
    return Status::Corruption("the checkpoint does not belong to this model and these epochs");
  RHIZOME_RETURN_IF_ERROR(steps_.RestoreState(checkpoint.learner));
  model_.RestoreWeights(checkpoint.weights);
  best_weights_ = checkpoint.best_weights;
  progress_ = checkpoint.progress;
  if (train_ && checkpoint.train_scores.defined()) Restore(checkpoint.train_scores, *train_);
  if (checkpoint.valid_scores.defined()) {
    Restore(checkpoint.valid_scores, valid_);
  } else if (progress_.valid.seeds > 0) {
    // Older versions kept no scores: the validation set is measured again, which changes no weight.
    progress_.valid = {};
    progress_.done =
        plan_.Before(static_cast<std::uint32_t>(progress_.epochs.size())) + plan_.train;
  }
  return Status::Ok();
}

// Steps:
// 1. Step runs one step; after the last step of an epoch, FinishEpoch computes the metrics, keeps
//    the weights of the best epoch, and sets the learning rate of the next epoch.
// 2. Save writes a checkpoint when it is due, and after an interruption.
// 3. At the end, the model receives the best epoch's weights.
Status TrainingRun::Run(const JobControl& control) {
  BeginEpoch();
  while (!AtEnd()) {
    const Status status = Step(control);
    // An interrupted run saves its progress, so that nothing is lost.
    const bool interrupted = status.code() == StatusCode::kInterrupted;
    const bool due = progress_.done % std::max<std::uint64_t>(options_.checkpoint_every, 1) == 0;
    if (options_.checkpoint_every > 0 && (interrupted || (status.ok() && due)))
      RHIZOME_RETURN_IF_ERROR(Save());
    RHIZOME_RETURN_IF_ERROR(status);
  }
  if (options_.checkpoint_every > 0 && options_.checkpoint_at_end) RHIZOME_RETURN_IF_ERROR(Save());
  if (!best_weights_.empty()) model_.RestoreWeights(best_weights_);
  return Status::Ok();
}

Improvement TrainingRun::better() const {
  return {.larger = LargerIsBetter(options_.monitor), .min_delta = learning().min_delta};
}

std::vector<std::optional<double>> TrainingRun::History() const {
  std::vector<std::optional<double>> history;
  for (const EpochReport& epoch : progress_.epochs) history.push_back(epoch.valid_metric);
  return history;
}

bool TrainingRun::stopped_early() const { return progress_.done < plan_.all() && AtEnd(); }

/// Patience is checked only between two epochs.
bool TrainingRun::AtEnd() const {
  if (progress_.done == plan_.all()) return true;
  const auto epochs = static_cast<std::uint32_t>(progress_.epochs.size());
  return progress_.done == plan_.Before(epochs) &&
         StopsEarly(learning().patience, History(), better());
}

/// Sets the learning rate of the epoch in progress.
void TrainingRun::BeginEpoch() {
  const double rate = LearningRate(learning().schedule, learning().learning_rate, learning().epochs,
                                   History(), better());
  progress_.current.learning_rate = rate;
  steps_.SetLearningRate(rate);
}

Status TrainingRun::Step(const JobControl& control) {
  const Stopwatch watch;
  EpochReport& epoch = progress_.current;
  const auto epochs = static_cast<std::uint32_t>(progress_.epochs.size());
  const bool is_valid = progress_.done - plan_.Before(epochs) >= plan_.train;
  ScoreTable* const sink = is_valid ? &valid_ : (train_ ? &*train_ : nullptr);
  RHIZOME_ASSIGN_OR_RETURN(const BatchOutcome outcome,
                           steps_.Take({.number = progress_.done,
                                        .epoch = epochs,
                                        .is_valid = is_valid,
                                        .kept = sink != nullptr ? sink->kept() : std::span<float>(),
                                        .checkpoint = [this] { return Save(); }},
                                       sink, epoch, control));
  if (!std::isfinite(outcome.loss_sum)) return Diverged();
  Add(outcome, is_valid ? progress_.valid : progress_.train);
  epoch.loss = MeanLoss(progress_.train);
  epoch.seconds += watch.seconds();
  ++progress_.done;
  const std::string detail = Detail();
  if (progress_.done == plan_.Before(epochs + 1)) RHIZOME_RETURN_IF_ERROR(FinishEpoch());
  return control.Report(
      {.phase = "train", .done = progress_.done, .total = plan_.all(), .detail = detail});
}

/// Computes the validation metrics of an epoch, if its validation set was evaluated.
Status TrainingRun::MeasureEpoch(EpochReport& epoch) {
  epoch.valid_metric.reset();
  const BatchOutcome valid = std::exchange(progress_.valid, {});
  if (valid.seeds == 0) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(steps_.Share(valid_));
  SplitMetrics metrics;
  if (options_.learner.objective != nullptr)
    metrics.values = {{.metric = Metric::kMrrSampled,
                       .value = valid.metric_sum / static_cast<double>(valid.seeds),
                       .reason = {}}};
  else
    metrics = valid_.Metrics(Split::kValid);
  valid_.Clear();
  epoch.valid_loss = MeanLoss(valid);
  epoch.valid_metrics = metrics.values;
  epoch.valid_accuracy = metrics.Of(Metric::kAccuracy).value_or(0);
  epoch.valid_metric =
      options_.monitor == Metric::kLoss ? epoch.valid_loss : metrics.Of(options_.monitor);
  if (epoch.valid_metric) return Status::Ok();
  for (const MetricValue& value : metrics.values) {
    if (value.metric != options_.monitor) continue;
    return Status::InvalidArgument(
        fmt::format("the validation set has no {}, which selects the best epoch: {}; choose "
                    "another metric with `monitor`",
                    MetricName(value.metric), value.reason));
  }
  return Status::Ok();
}

/// Computes the training metrics of an epoch. If some vertices were not seen, because the number of
/// minibatches is limited, no metrics are reported.
Status TrainingRun::MeasureTrain(EpochReport& epoch) {
  const BatchOutcome seen = std::exchange(progress_.train, {});
  if (!train_) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(steps_.Share(*train_));
  const std::span<const float> kept = std::as_const(*train_).kept();
  const bool all = std::none_of(kept.begin(), kept.end(), [](float x) { return std::isnan(x); });
  if (all && seen.seeds > 0) epoch.train_metrics = train_->Metrics(Split::kTrain).values;
  train_->Clear();
  return Status::Ok();
}

Status TrainingRun::FinishEpoch() {
  EpochReport epoch = std::exchange(progress_.current, {});
  epoch.resident_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(MeasureTrain(epoch));
  RHIZOME_RETURN_IF_ERROR(MeasureEpoch(epoch));
  WarnOfLoss(epoch);
  progress_.epochs.push_back(epoch);
  // Without a validation set the last epoch is kept.
  const double value = epoch.valid_metric.value_or(0);
  const double loss = epoch.valid_loss.value_or(epoch.loss);
  const Improvement any{.larger = LargerIsBetter(options_.monitor), .min_delta = 0};
  const bool best =
      best_weights_.empty() || plan_.valid == 0 || RHIZOME_MUTANT("the last weights are kept") ||
      (epoch.valid_metric && (any.Is(value, progress_.best_value) ||
                              (value == progress_.best_value && loss < progress_.best_loss)));
  // An epoch that was not measured is kept only until one is measured.
  const bool first = epoch.valid_metric && progress_.best_epoch > 0 &&
                     !progress_.epochs[progress_.best_epoch - 1].valid_metric;
  if (best || first || options_.keep_last) {
    best_weights_ = model_.CopyWeights();
    progress_.best_value = value;
    progress_.best_loss = loss;
    progress_.best_epoch = static_cast<std::uint32_t>(progress_.epochs.size());
    if (options_.on_best) RHIZOME_RETURN_IF_ERROR(options_.on_best(progress_));
  }
  BeginEpoch();
  return Status::Ok();
}

void TrainingRun::WarnOfLoss(const EpochReport& epoch) {
  if (warned_ || progress_.epochs.empty() || !options_.warn) return;
  const double first = progress_.epochs.front().loss;
  if (!(epoch.loss > kLossBeyondReason * first)) return;
  warned_ = true;
  options_.warn(fmt::format(
      "the loss of epoch {} is {:.3g}, but the loss of the first is {:.3g}; a smaller learning "
      "rate than {}, or `clip_norm`, may help",
      progress_.epochs.size() + 1, epoch.loss, first, learning().learning_rate));
}

Status TrainingRun::Save() {
  const bool keeps_valid = progress_.valid.seeds > 0;
  const bool keeps_train = train_ && progress_.train.seeds > 0;
  if (keeps_valid) RHIZOME_RETURN_IF_ERROR(steps_.Share(valid_));
  if (keeps_train) RHIZOME_RETURN_IF_ERROR(steps_.Share(*train_));
  if (options_.checkpoint.empty()) return Status::Ok();
  const Checkpoint checkpoint{.progress = progress_,
                              .weights = model_.CopyWeights(),
                              .best_weights = best_weights_,
                              .learner = steps_.CopyState(),
                              .valid_scores = keeps_valid ? TensorOf(valid_) : torch::Tensor(),
                              .train_scores = keeps_train ? TensorOf(*train_) : torch::Tensor()};
  if (options_.save) return options_.save(checkpoint);
  return SaveCheckpoint(options_.checkpoint, options_.job, checkpoint);
}

Status TrainingRun::Diverged() const {
  const auto epochs = static_cast<std::uint32_t>(progress_.epochs.size());
  const std::uint64_t of_epoch = progress_.done - plan_.Before(epochs);
  std::string where = fmt::format("the loss of epoch {}", epochs + 1);
  if (plan_.train > 1) {
    where += fmt::format(", minibatch {}", of_epoch % plan_.train + 1);
  }
  where += " is not a number";
  const std::optional<Row> bad = steps_.BadRow();
  std::optional<std::string> vertex;
  if (bad && options_.name_of_vertex) vertex = options_.name_of_vertex(*bad);
  if (!vertex && options_.find_bad_vertex) vertex = options_.find_bad_vertex();
  if (vertex) {
    return Status::InvalidArgument(
        fmt::format("{}: array {} has NaN or an infinite value for vertex {}; correct its row",
                    where, options_.features, *vertex));
  }
  if (options_.find_extreme_inputs) {
    if (const auto cause = options_.find_extreme_inputs())
      return Status::InvalidArgument(fmt::format("{}: {}", where, *cause));
  }
  return Status::InvalidArgument(fmt::format(
      "{}; check array {} for huge values, or use a smaller learning rate than {}, or `clip_norm`",
      where, options_.features, learning().learning_rate));
}

/// Returns the progress text about the current epoch.
std::string TrainingRun::Detail() const {
  const EpochReport& epoch = progress_.current;
  std::string text = fmt::format("loss {:.4f}, epoch {}/{}", epoch.loss,
                                 progress_.epochs.size() + 1, learning().epochs);
  const auto& epochs = progress_.epochs;
  const auto last = std::find_if(epochs.rbegin(), epochs.rend(),
                                 [](const EpochReport& e) { return e.valid_metric.has_value(); });
  if (last != epochs.rend()) {
    text += fmt::format(", valid {} {:.4f} (best {:.4f} in {})", MetricName(options_.monitor),
                        *last->valid_metric, progress_.best_value, progress_.best_epoch);
  }
  if (epoch.rows_requested == 0) return text;  // not read by minibatches
  const auto rows = static_cast<double>(epoch.rows_requested);
  return text + fmt::format(", {:.0f} k rows/s, {:.0f} % of them read, {:.0f} MB/s",
                            rows / epoch.seconds / 1e3,
                            100 * static_cast<double>(epoch.rows_read) / rows,
                            static_cast<double>(epoch.bytes_read) / epoch.seconds / 1e6);
}

}  // namespace internal
}  // namespace rhizome
