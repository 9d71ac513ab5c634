#include "gnn/train/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cache/feed/epoch_plan.h"
#include "cache/feed/feature_decoder.h"
#include "cache/feed/feed_profile.h"
#include "cache/feed/score_table.h"
#include "cache/job/job_scratch.h"
#include "cache/job/process_memory.h"
#include "cache/kernels/simd.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/non_finite_report.h"
#include "gnn/models/ignored_facts.h"
#include "gnn/ops/torch_threads.h"
#include "gnn/options/training_options.h"
#include "gnn/train/best_model.h"
#include "gnn/train/device_feed.h"
#include "gnn/train/loss_cause.h"
#include "gnn/train/measure.h"
#include "gnn/train/minibatch_steps.h"
#include "gnn/train/train_feed.h"
#include "gnn/train/train_job.h"
#include "gnn/train/training_run.h"
#include "rhizome/policy.h"
#include "rhizome/transport.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Adds a warning to the report, and passes it to JobOptions::note.
void Warn(std::string warning, const TrainOptions& options, TrainReport& report) {
  if (options.job.note) options.job.note(warning);
  report.warnings.push_back(std::move(warning));
}

std::vector<WeightReport> WeightsOf(const Model& model) {
  std::vector<WeightReport> weights;
  for (const auto& [name, tensor] : model.ToFile().tensors) weights.push_back({name, tensor.shape});
  return weights;
}

constexpr const char* kCheckpointName = "CHECKPOINT";

/// State that the training runs of a job share.
struct JobState {
  const JobScratch& scratch;
  BestModel best;
  const TrainOnce& once;
  const ComputeDevice* device = nullptr;         // null: the CPU
  std::optional<std::uint64_t> held_bytes = {};  // before the first training run
};

/// Returns the file name of a training run's checkpoint in its job's folder.
std::string CheckpointName(const TrainOptions& options) {
  return options.learning.seeds == 1 ? kCheckpointName
                                     : fmt::format("{}-{}", kCheckpointName, options.learning.seed);
}

BestEpoch BestOf(const TrainProgress& progress, std::uint64_t seed) {
  return {.seed = seed,
          .epoch = progress.best_epoch,
          .value = progress.epochs[progress.best_epoch - 1].valid_metric,
          .loss = progress.best_loss};
}

TrainingRunOptions MakeRunOptions(const TrainJob& job, const TrainOptions& options, JobState& state,
                                  TrainReport& report) {
  TrainingRunOptions run{
      .learner = {.learning = options.learning, .class_weights = job.class_weights},
      .monitor = job.monitor};
  const std::vector<std::string> features = FeatureArrays(options.data.features, job.inputs);
  run.features = fmt::format("{}", fmt::join(features, " or "));
  run.checkpoint_every = options.job.checkpoint_every;
  run.checkpoint_at_end = options.learning.seeds > 1;
  run.checkpoint = state.scratch.folder() / CheckpointName(options);
  run.job = DescribeJob(job, options);
  run.on_best = [&job, &state, seed = options.learning.seed](const TrainProgress& progress) {
    return state.best.Offer(BestOf(progress, seed), *job.model);
  };
  run.warn = [&options, &report](std::string warning) {
    Warn(std::move(warning), options, report);
  };
  run.name_of_vertex = [&job](Row row) {
    const Result<VertexId> vertex = job.graph->VertexAt(row);
    const Result<ExternalId> id =
        vertex ? job.graph->ExternalIdOf(*vertex) : Result<ExternalId>(Fail(vertex.error()));
    return id ? ToString(*id) : fmt::format("of row {}", row);
  };
  run.find_bad_vertex = [&job, features]() -> std::optional<std::string> {
    for (const std::string& one : features)
      if (const auto first = FirstNonFinite(*job.graph, one, job.inputs, JobControl()))
        return ToString(*first);
    return std::nullopt;
  };
  run.find_extreme_inputs = [&job, features]() -> std::optional<std::string> {
    for (const std::string& one : features)
      if (auto cause = ExtremeInputs(*job.graph, one, job.sampling.edge_weights)) return cause;
    return std::nullopt;
  };
  return run;
}

/// Returns the options for uploading rows to a device, and adds the device to the report. By
/// default, half of the free memory is for cached rows.
Result<DeviceFeedOptions> PlanDeviceFeed(const ComputeDevice& device, const TrainOptions& options,
                                         const TrainJob& job, TrainReport& report) {
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(job.features, options.model.normalize_features));
  const std::uint64_t rows = job.graph->vertex_count();
  const DeviceOptions& settings = *options.minibatch()->device;
  std::uint64_t frame_bytes = 0;
  if (settings.cache != PolicyKind::kNone) {
    RHIZOME_ASSIGN_OR_RETURN(const DeviceProperties now, device.kernels->Facts());
    frame_bytes =
        std::min(settings.memory_bytes.value_or(now.free_bytes / 2), rows * decoder.row_bytes());
  }
  report.device = {.name = device.facts.name,
                   .sm = device.facts.compute_capability,
                   .memory_bytes = device.facts.memory_bytes,
                   .frame_bytes = frame_bytes,
                   .cache = settings.cache};
  return DeviceFeedOptions{.policy = settings.cache,
                           .frame_bytes = frame_bytes,
                           .type = decoder.type(),
                           .dim = decoder.dim(),
                           .row_count = rows,
                           .reaches = DevicePool::CanReach(*device.kernels).ok()};
}

/// Returns the bytes of the host cache's table that the device reads in place: frames and planned
/// held rows. Slots beyond these are used only if a wait would otherwise never end
/// (HoldLimits::most), and are not part of the memory plan. Returns 0 if the device cannot read the
/// table.
std::uint64_t BytesInReach(const DeviceFeedOptions& device, const FeedPipelineOptions& feed) {
  if (!device.reaches || feed.overlap == Overlap::kChangeset) return 0;
  const std::uint64_t frames = std::min(feed.cache_bytes / device.row_bytes(), device.row_count);
  return (frames + feed.held_rows) * device.row_bytes();
}

/// Trains with the planned feed. `on_device`: absent if the CPU computes. `objective`: null for the
/// loss of the task.
Status RunEpochs(const OneTraining& one, const TrainingSeeds& seeds, FeedPlan feed,
                 const std::optional<DeviceFeedOptions>& on_device, Objective* objective) {
  const auto& [job, options, scratch, run_options, held_bytes, report, control, device, learned] =
      one;
  FileSystem& fs = job.store->fs();
  RHIZOME_ASSIGN_OR_RETURN(const Path superbatches, MakeSuperbatchFolder(fs, scratch));
  RHIZOME_RETURN_IF_ERROR(feed.Prepare(*job.graph, superbatches, control));
  StageTrace trace;
  const Path trace_file = AbsolutePath(fs, options.minibatch()->trace);
  if (!trace_file.empty()) feed.pipeline.trace = &trace;
  std::unique_ptr<DeviceFeed> device_feed;
  if (on_device) {
    DeviceFeedOptions where = *on_device;
    where.reach_bytes = BytesInReach(where, feed.pipeline);
    RHIZOME_ASSIGN_OR_RETURN(device_feed, DeviceFeed::Open(*device, where));
    feed.pipeline.on_superbatch = [&](const Trace& rows) { return device_feed->Announce(rows); };
  }
  TrainingRunOptions of_run = run_options;
  of_run.learner.objective = objective;
  MinibatchSteps steps(*job.model, job.labels, of_run.learner, feed.pipeline.trace,
                       device_feed.get(), learned);
  if (learned != nullptr) {
    feed.pipeline.on_sampled = [&rows = *learned](const Minibatch& m) { rows.NoteSampled(m); };
    feed.pipeline.on_drawn = [&rows = *learned] { rows.EndSuperbatch(); };
  }
  TrainingRun run(*job.model, job.labels, of_run, seeds.counts, steps);
  RHIZOME_RETURN_IF_ERROR(ResumeTraining(one, run));
  {
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<FeedPipeline> pipeline,
        FeedPipeline::Open(*job.graph, feed.pipeline, seeds.after(run.progress().done), control));
    steps.ReadFrom(*pipeline);
    const Status status = run.Run(control);
    TakeProgress(run, report);
    TakeReads(feed, *pipeline, report);
    if (device_feed != nullptr) {
      report.device->host_bytes = device_feed->host_bytes();
      report.device->reaches = device_feed->reaches();
      device_feed->Leave();
    }
    RHIZOME_RETURN_IF_ERROR(status);
  }
  RHIZOME_RETURN_IF_ERROR(FinishTraining(one, run));
  if (!trace_file.empty()) RHIZOME_RETURN_IF_ERROR(trace.Write(trace_file));
  return RemoveTree(fs, superbatches);
}

/// The TrainOnce for minibatches.
Status TrainOnMinibatches(const OneTraining& one) {
  const auto& [job, options, scratch, run, held, report, control, device, learned] = one;
  const MinibatchOptions& minibatch = *options.minibatch();
  const EpochPlan plan(job.train, job.valid,
                       {.batch_size = minibatch.batch_size,
                        .epochs = options.learning.epochs,
                        .seed = options.learning.seed,
                        .max_train_batches = minibatch.steps,
                        .valid_every = options.learning.eval_every});
  std::optional<DeviceFeedOptions> on_device;
  if (device != nullptr) {
    job.model->MoveTo(device->place);  // before free memory is measured
    RHIZOME_ASSIGN_OR_RETURN(on_device, PlanDeviceFeed(*device, options, job, report));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      FeedPlan feed, PlanTrainingFeed(one, plan, TrainingPipeline(one), minibatch.feed.superbatch,
                                      on_device ? &*on_device : nullptr));
  const JobMemoryPlan memory = feed.memory;
  report.minibatches = plan.train_batches() + plan.valid_batches();
  // The pipeline advances a copy of the plan on its own thread; the run counts steps on this
  // thread.
  const auto after = [&plan](std::uint64_t done) -> FeedPipeline::NextSeeds {
    EpochPlan rest = plan;
    rest.Skip(done);
    return [rest]() mutable { return rest.Next(); };
  };
  RHIZOME_RETURN_IF_ERROR(RunEpochs(one, {.counts = plan.counts(), .stream = {}, .after = after},
                                    std::move(feed), on_device, nullptr));
  if (device != nullptr) job.model->MoveTo(torch::kCPU);
  // Inference reads learned rows from their array, which is published afterwards.
  if (!options.learning.test || learned != nullptr) return Status::Ok();
  return EvaluateBestWeights(one, memory.cache_bytes, one.control);
}

/// Trains and measures with one seed, and completes the report. If it fails, the checkpoint remains
/// in the scratch folder.
Status RunTraining(TrainJob& job, const TrainOptions& options, JobState& state, TrainReport& report,
                   const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<LearnedRows> learned,
                           LearnedRows::Open(job, options, state.scratch.folder()));
  const auto held = [&] {
    if (!state.held_bytes) state.held_bytes = HeldBytes(report.base_memory_bytes);
    return *state.held_bytes + (learned == nullptr ? 0 : learned->memory_bytes());
  };
  TrainingRunOptions run = MakeRunOptions(job, options, state, report);
  if (learned != nullptr) {
    run.keep_last = true;
    run.save = [&](const Checkpoint& checkpoint) {
      return learned->Checkpoint(EncodeCheckpoint(run.job, checkpoint));
    };
  }
  RHIZOME_RETURN_IF_ERROR(state.once({.job = job,
                                      .options = options,
                                      .scratch = state.scratch.folder(),
                                      .run = run,
                                      .held_bytes = held,
                                      .report = report,
                                      .control = control,
                                      .device = state.device,
                                      .learned = learned.get()}));
  if (learned != nullptr) {
    report.learned = learned->report();
    RHIZOME_RETURN_IF_ERROR(learned->Publish(options.store, control));
  }
  if (report.metrics.valid) report.valid_accuracy = report.metrics.valid->Of(Metric::kAccuracy);
  if (report.metrics.test) report.test_accuracy = report.metrics.test->Of(Metric::kAccuracy);
  return Status::Ok();
}

Status CheckDevice(const DeviceOptions& device) {
  const PolicyKind cache = device.cache;
  if (cache == PolicyKind::kBelady || cache == PolicyKind::kStatic || cache == PolicyKind::kMatch ||
      cache == PolicyKind::kNone)
    return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "`device_cache={}`: a device supports belady, static, match and none", PolicyName(cache)));
}

SeedReport SeedReportOf(const TrainReport& report, std::uint64_t seed) {
  return {.seed = seed,
          .best_epoch = report.best_epoch,
          .epochs = static_cast<std::uint32_t>(report.epochs.size()),
          .stopped_early = report.stopped_early,
          .best_value = report.epochs[report.best_epoch - 1].valid_metric,
          .metrics = report.metrics,
          .course = report.epochs};
}

/// Completes the report with results over all seeds. `last`: report of the training run that
/// failed, if any; its completed epochs are included.
void Summarise(std::vector<SeedReport> seeds, const JobState& state, const TrainReport* last,
               std::uint64_t last_seed, TrainReport& report) {
  if (last != nullptr && !last->epochs.empty()) {
    seeds.push_back(SeedReportOf(*last, last_seed));
    if (state.best.best()->seed == last_seed) report = *last;
  }
  report.spread = SpreadOf(seeds);
  report.seeds = std::move(seeds);
  if (state.best.best()) report.best_seed = state.best.best()->seed;
}

/// Trains with each seed. The report is the best run's, with the results of all seeds, also after
/// an error.
Status RunSeeds(TrainJob& job, const TrainOptions& options, JobState& state, TrainReport& report,
                const JobControl& control) {
  const TrainReport common = report;
  std::vector<SeedReport> seeds;
  std::vector<std::string> warnings = common.warnings;
  std::uint64_t resumed = 0;
  for (std::uint32_t i = 0; i < options.learning.seeds; ++i) {
    TrainOptions of_seed = options;
    of_seed.learning.seed = options.learning.seed + i;
    TrainReport run = common;
    run.warnings.clear();
    // The first seed's model was created when the job was opened.
    Status status = i == 0 ? Status::Ok() : MakeModel(of_seed, job);
    if (status.ok()) status = RunTraining(job, of_seed, state, run, control);
    if (!status.ok()) {
      Summarise(std::move(seeds), state, &run, of_seed.learning.seed, report);
      warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
      report.warnings = std::move(warnings);
      return status;
    }
    seeds.push_back(SeedReportOf(run, of_seed.learning.seed));
    warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
    resumed += run.resumed_minibatches;
    if (state.best.best()->seed == of_seed.learning.seed) report = std::move(run);
  }
  Summarise(std::move(seeds), state, nullptr, 0, report);
  report.warnings = std::move(warnings);
  report.resumed_minibatches = resumed;
  return Status::Ok();
}

/// Returns the checkpoint of an interrupted run; nullopt if there is none.
Result<std::optional<Checkpoint>> CheckpointOfRun(const OneTraining& one) {
  if (one.learned == nullptr)
    return LoadCheckpoint(one.job.store->fs(), one.run.checkpoint, one.run.job);
  if (one.learned->training().empty()) return std::optional<Checkpoint>();
  RHIZOME_ASSIGN_OR_RETURN(
      Checkpoint checkpoint,
      DecodeCheckpoint(one.learned->training(), "with learned rows in " + one.scratch.string(),
                       one.run.job));
  return std::optional(std::move(checkpoint));
}

}  // namespace

Status TrainOnSeeds(const OneTraining& one, const TrainingSeeds& seeds, Objective& objective) {
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanTrainingFeed(one, seeds.stream, objective));
  one.report.minibatches = seeds.counts.train + seeds.counts.valid;
  return RunEpochs(one, seeds, std::move(feed), {}, &objective);
}

Status ResumeTraining(const OneTraining& one, TrainingRun& run) {
  if (!one.options.job.resume) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint, CheckpointOfRun(one));
  if (!checkpoint) return Status::Ok();
  if (checkpoint->by_numbers && one.run.warn) {
    one.run.warn(
        "an older version of Rhizome wrote the checkpoint and recorded only commit numbers, so it "
        "was not checked whether the store is a copy that has diverged");
  }
  RHIZOME_RETURN_IF_ERROR(run.Resume(*checkpoint));
  one.report.resumed_minibatches += run.progress().done;
  return Status::Ok();
}

void TakeProgress(const TrainingRun& run, TrainReport& report) {
  report.epochs = run.progress().epochs;
  report.best_epoch = run.progress().best_epoch;
}

Status FinishTraining(const OneTraining& one, const TrainingRun& run) {
  // A resumed run may have found its best epoch earlier.
  RHIZOME_RETURN_IF_ERROR(one.run.on_best(run.progress()));
  one.report.stopped_early = run.stopped_early();
  return Status::Ok();
}

// Trains a model in these steps:
// 1. Opens the store, the graph, the labels and the model (OpenTrainJob), and locks the job's
//    scratch folder.
// 2. For each seed (RunSeeds): samples the first minibatches and divides the memory among
//    superbatch, cache and neighbour cache (PlanTrainingFeed).
// 3. Runs the epochs: a FeedPipeline delivers minibatches, and a TrainingRun learns from them,
//    evaluates the validation set and writes checkpoints (RunEpochs). BestModel writes the model
//    file at each best epoch.
// 4. Measures the best epoch's weights with all neighbours (EvaluateBestWeights).
// 5. Removes the scratch folder.
Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control,
                               const ComputeDeviceFactory& open) {
  return TrainModel(options, TrainOnMinibatches, control, open);
}

Result<TrainReport> TrainModel(const TrainOptions& options, const TrainOnce& once,
                               const JobControl& control, const ComputeDeviceFactory& open) {
  return TrainModel(options, once, {}, control, open);
}

Result<TrainReport> TrainModel(const TrainOptions& options, const TrainOnce& once,
                               const PrepareJob& prepare, const JobControl& control,
                               const ComputeDeviceFactory& open) {
  TrainReport report;
  report.base_memory_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  // Opened before libtorch is used, and destroyed after all tensors on the device.
  std::optional<ComputeDevice> device;
  if (options.minibatch() != nullptr && options.minibatch()->device) {
    RHIZOME_RETURN_IF_ERROR(CheckDevice(*options.minibatch()->device));
    RHIZOME_ASSIGN_OR_RETURN(device, open());
  }
  SetTorchThreads(options.resources.threads);
  RHIZOME_ASSIGN_OR_RETURN(TrainJob job, OpenTrainJob(options, prepare));
  report.task = job.labels.task;
  report.class_names = job.class_names;
  report.monitor = job.monitor;
  report.valid_vertices = job.valid.size();
  report.network = job.model->FullSpec();
  report.weights = WeightsOf(*job.model);
  report.majority_accuracy = MajorityAccuracy(job.labels);
  if (!options.model.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(
        report.ignored,
        IgnoredFacts(*job.graph,
                     {.sampling = options.data.sampling,
                      .edge_weights = job.sampling.edge_weights,
                      .vertex_types = !job.inputs.empty() || job.model->by_vertex_type(),
                      .edge_types = job.model->typed() || job.decoder_by_relation,
                      .training = job.train}));
  }
  report.direction = options.data.sampling.walked();
  report.edge_weights = job.sampling.edge_weights;
  ReportIgnored(report.ignored, options.job.note);
  for (std::string& warning : WarningsOf(job, options)) Warn(std::move(warning), options, report);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(*job.store, options.job.name,
                                            options.job.resume ? JobScratch::Leftovers::kKeep
                                                               : JobScratch::Leftovers::kRemove));
  // Only rank 0's folder has a checkpoint to resume from.
  const bool resumes = options.job.checkpoint_every > 0 || options.job.resume;
  const Transport* const transport = TransportOf(options);
  if (resumes && (transport == nullptr || transport->rank() == 0)) scratch->Keep();
  JobState state{.scratch = *scratch,
                 .best = BestModel(AbsolutePath(job.store->fs(), options.job.out), job.labels.task,
                                   job.monitor, report.direction, job.class_names, job.metadata),
                 .once = once,
                 .device = device ? &*device : nullptr};
  const Status status = RunSeeds(job, options, state, report, control);
  if (!status.ok()) {
    report.peak_memory_bytes = PeakResidentBytes();
    report.model = state.best.best() ? options.job.out.string() : "";
    if (options.job.on_stop && !report.seeds.empty()) options.job.on_stop(report);
    // Only the checkpoints can be reused.
    RHIZOME_RETURN_IF_ERROR(RemoveTree(job.store->fs(), scratch->folder() / kSuperbatchFolder));
    return Fail(state.best.Explain(status));
  }
  report.model = options.job.out.string();
  scratch->RemoveAtEnd();
  report.peak_memory_bytes = PeakResidentBytes();
  return report;
}

}  // namespace internal
}  // namespace rhizome
