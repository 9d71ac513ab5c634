#include "gnn/full_graph/train_full.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/score_table.h"
#include "gnn/full_graph/full_job.h"
#include "gnn/full_graph/full_times.h"
#include "gnn/full_graph/step_run.h"
#include "gnn/ops/torch_threads.h"
#include "gnn/train/measure.h"
#include "gnn/train/optimizer.h"
#include "gnn/train/train.h"
#include "gnn/train/training_steps.h"
#include "storage/base/mix.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kArraysFolder = "arrays";

Status CheckOptions(const TrainOptions& options) {
  const auto refuse = [](const char* what) { return Status::InvalidArgument(what); };
  const NeighborSampling& sampling = options.data.sampling;
  if (!sampling.typed_fanouts.empty() || !sampling.meta_path.empty() || sampling.weighted)
    return refuse(
        "`full_graph` uses all neighbours, so it cannot be combined with `typed_fanouts`, "
        "`meta_path` or `weighted`");
  if (!sampling.time_attribute.empty())
    return refuse(
        "`full_graph` has no seeds whose time could exclude edges, so it cannot be combined with "
        "`time_attribute`");
  return Status::Ok();
}

/// The steps of a full-graph training: one along the gradient, and one that evaluates.
class FullSteps final : public TrainingSteps {
 public:
  FullSteps(FullJob& full, const TrainJob& job, const LearnerOptions& options,
            StepCheckpointer& keeper)
      : full_(full),
        job_(job),
        keeper_(keeper),
        optimizer_(*job.model, options.learning),
        seed_(options.learning.seed) {}

  Result<BatchOutcome> Take(const TrainingStep& step, VertexScoreSink* sink, EpochReport& epoch,
                            const JobControl& control) override {
    const ScratchMoved before = full_.moved();
    const std::uint64_t features_before = full_.feature_bytes_read();
    const Stopwatch watch;
    StepRun passes(full_, {.measures = step.is_valid,
                           .step = step.number,
                           .keeper = &keeper_,
                           .checkpoint = step.checkpoint,
                           .scores = step.kept});
    BatchOutcome outcome;
    const PassUser run = [&](const GraphPass& pass) -> Result<TileSums> {
      const Stopwatch of_pass;
      const std::string phase = fmt::format("epoch {}", step.epoch + 1);
      RHIZOME_ASSIGN_OR_RETURN(TileSums sums, passes.Run(pass, phase, control));
      double& seconds = step.is_valid                       ? epoch.measure_seconds
                        : pass.name.starts_with("backward") ? epoch.backward_seconds
                                                            : epoch.forward_seconds;
      seconds += of_pass.seconds();
      return sums;
    };
    double loss = 0;
    if (step.is_valid) {
      RHIZOME_ASSIGN_OR_RETURN(loss, full_.network().Evaluate(*sink, run));
      outcome.seeds = job_.valid.size();
    } else {
      RHIZOME_ASSIGN_OR_RETURN(loss,
                               full_.network().Learn(SplitMix64(seed_, step.epoch), sink, run));
      optimizer_.StepAlongGradients();
      outcome.seeds = job_.train.size();
    }
    outcome.loss_sum = loss * static_cast<double>(outcome.seeds);
    const double watch_seconds = watch.seconds();
    epoch.compute_seconds += watch_seconds;
    const ScratchMoved after = full_.moved();
    epoch.spill_bytes_read += after.read - before.read;
    epoch.spill_bytes_written += after.written - before.written;
    epoch.feature_bytes_read += full_.feature_bytes_read() - features_before;
    const double busy = epoch.disk_busy * (epoch.compute_seconds - watch_seconds) +
                        after.busy_seconds - before.busy_seconds;
    epoch.disk_busy = busy / epoch.compute_seconds;
    return outcome;
  }

  void SetLearningRate(double rate) override { optimizer_.SetLearningRate(rate); }
  LearnerState CopyState() const override { return optimizer_.CopyState(); }
  Status RestoreState(const LearnerState& state) override { return optimizer_.RestoreState(state); }

 private:
  FullJob& full_;
  const TrainJob& job_;
  StepCheckpointer& keeper_;
  Optimizer optimizer_;
  const std::uint64_t seed_;
};

/// Evaluates the weights of the model on all sets. This is the step after the last training step.
Result<TaskMetrics> Measure(FullJob& full, const TrainJob& job, StepCheckpointer& keeper,
                            TrainingRun& run, const JobControl& control) {
  ScoreTable scores(job.labels, std::nullopt);
  StepRun passes(full, {.measures = true,
                        .step = run.progress().done,
                        .keeper = &keeper,
                        .checkpoint = [&] { return run.Save(); },
                        .scores = scores.kept()});
  RHIZOME_RETURN_IF_ERROR(full.network().Evaluate(
      scores, [&](const GraphPass& pass) { return passes.Run(pass, "test", control); }));
  return MetricsOfAllSets(scores);
}

/// Returns the path of the state of a step, next to the checkpoint.
Path StatePath(const OneTraining& one) {
  Path path = one.run.checkpoint;
  path += "-STEP";
  return path;
}

/// Loads the state of the step that follows the checkpoint, if one was written.
Result<std::optional<StepState>> StateToResume(const OneTraining& one) {
  if (!one.options.job.resume) return std::optional<StepState>();
  FileSystem& fs = one.job.store->fs();
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                           LoadCheckpoint(fs, one.run.checkpoint, one.run.job));
  RHIZOME_ASSIGN_OR_RETURN(std::optional<StepState> state,
                           LoadStepState(fs, StatePath(one), one.run.job));
  if (!checkpoint || !state || checkpoint->progress.done != state->step)
    return std::optional<StepState>();
  return state;
}

/// Trains on the full graph:
///   1. Loads the state of an interrupted step, if there is one (StateToResume).
///   2. Opens the job, which divides the memory and plans the steps, and prepares its folder.
///   3. Resumes from the checkpoint and runs the epochs: a training step each, and an evaluation
///      step every `eval_every` epochs.
///   4. Evaluates the kept weights, and removes the scratch arrays.
Status TrainOnFullGraph(const OneTraining& one) {
  const Path folder = one.scratch / kArraysFolder;
  RHIZOME_ASSIGN_OR_RETURN(std::optional<StepState> from, StateToResume(one));
  Result<std::unique_ptr<FullJob>> opened =
      FullJob::Open(one.job, one.options, folder, from ? &*from : nullptr, one.control);
  if (!opened && opened.error().code() == StatusCode::kOutOfMemory && from) {
    // The chunks of the state do not fit into this memory: restart its step.
    from.reset();
    opened = FullJob::Open(one.job, one.options, folder, nullptr, one.control);
  }
  RHIZOME_RETURN_IF_ERROR(opened);
  const std::unique_ptr<FullJob> full = *std::move(opened);
  RHIZOME_RETURN_IF_ERROR(full->Prepare(from ? &*from : nullptr));
  StepCheckpointer keeper(*full, {.path = StatePath(one),
                                  .job = one.run.job,
                                  .every = one.options.full_graph()->checkpoint_seconds,
                                  .enabled = one.options.job.checkpoint_every > 0});
  if (from) keeper.ResumeFrom(*std::move(from));
  one.report.full_graph = full->report();
  one.report.memory = {.held = full->held_bytes(), .working = full->report().memory_bytes};
  // An epoch has one batch of each set.
  const EpochPlan plan(one.job.train, one.job.valid,
                       {.batch_size = std::max(one.job.train.size(), one.job.valid.size()),
                        .epochs = one.options.learning.epochs,
                        .seed = one.options.learning.seed,
                        .shuffle = false,
                        .valid_every = one.options.learning.eval_every});
  TrainingRunOptions options = one.run;
  options.checkpoint_every *= plan.train_batches() + plan.valid_batches();
  FullSteps steps(*full, one.job, options.learner, keeper);
  TrainingRun run(*one.job.model, one.job.labels, options, plan.counts(), steps);
  RHIZOME_RETURN_IF_ERROR(ResumeTraining(one, run));
  const Status status = run.Run(one.control);
  TakeProgress(run, one.report);
  RHIZOME_RETURN_IF_ERROR(status);
  RHIZOME_RETURN_IF_ERROR(FinishTraining(one, run));
  if (one.options.learning.test) {
    RHIZOME_ASSIGN_OR_RETURN(one.report.metrics, Measure(*full, one.job, keeper, run, one.control));
  }
  full->space().WaitForRemovals();
  return RemoveTree(one.job.store->fs(), folder);
}

}  // namespace

Result<TrainReport> TrainFullGraph(const TrainOptions& options, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  return TrainModel(options, TrainOnFullGraph, control);
}

Result<FullGraphReport> PlanFullTraining(const TrainOptions& options, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  SetTorchThreads(options.resources.threads);
  RHIZOME_ASSIGN_OR_RETURN(const TrainJob job, OpenTrainJob(options));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<FullJob> full,
      FullJob::Open(job, options, job.store->scratch() / options.job.name, nullptr, control));
  FullGraphReport report = full->report();
  RHIZOME_RETURN_IF_ERROR(EstimateTimes(*full, job.store->scratch() / (options.job.name + "-trial"),
                                        std::max<std::uint32_t>(options.resources.threads, 1),
                                        /*measured=*/!job.valid.empty(), report, control));
  return report;
}

}  // namespace internal
}  // namespace rhizome
