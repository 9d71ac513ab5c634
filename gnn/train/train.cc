#include "rhizome/gnn/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "rhizome/cache/epoch_plan.h"
#include "rhizome/cache/feed_profile.h"
#include "rhizome/cache/job_scratch.h"
#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/process_memory.h"
#include "rhizome/cache/resolve_sampling.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/ignored_facts.h"
#include "rhizome/gnn/layer_sizes.h"
#include "rhizome/gnn/layerwise_run.h"
#include "rhizome/gnn/torch_threads.h"
#include "rhizome/gnn/training_memory.h"
#include "rhizome/gnn/training_run.h"

namespace rhizome::inline internal {
namespace {

/// Describes how neighbours are drawn and whether edges have weights; empty: plainly, and not.
std::string DescribeDraws(const TrainOptions& options, bool edge_weights) {
  const std::string text = DescribeSampling(options.sampling);
  if (!edge_weights) return text;
  return text.empty() ? "edges have weights" : text + "; edges have weights";
}

struct TrainJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
  ClassLabels labels;
  std::vector<VertexId> train;
  std::vector<VertexId> valid;
  ArrayEntry features;
  std::optional<Model> model;
  MinibatchSamplerOptions sampling;  // as the graph has it
};

Status CheckTrainOptions(const TrainOptions& options) {
  const std::size_t hops =
      options.sampling.typed_fanouts.empty() ? options.fanouts.size() : HopsOf(options.sampling);
  if (!options.model.no_edges && hops != options.model.layers) {
    return Status::InvalidArgument(
        fmt::format("{} fanouts for {} layers; give one for each layer, such as --fanout 10,10",
                    hops, options.model.layers));
  }
  if (options.batch_size == 0 || options.epochs == 0) {
    return Status::InvalidArgument("batch size and epochs must be at least 1");
  }
  if (options.labels.empty() || options.split.empty()) {
    return Status::InvalidArgument("the arrays of labels and of the split must be named");
  }
  if (options.epochs > EpochPlan::kMostEpochs) {
    return Status::InvalidArgument(
        fmt::format("{} epochs; at most {}", options.epochs, EpochPlan::kMostEpochs));
  }
  if (!(options.learning_rate > 0) || !(options.weight_decay >= 0)) {
    return Status::InvalidArgument(
        "the learning rate must be positive, the weight decay not negative");
  }
  // Checks now that the results can be written, rather than after hours of training.
  for (const Path& path : {options.out, options.trace}) {
    if (path.empty()) continue;
    const Result<OutputFile> probe = OutputFile::Create(path);
    if (!probe) return probe.error();
  }
  return Status::Ok();
}

Result<TrainJob> OpenJob(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckTrainOptions(options));
  TrainJob job;
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead,
                                       {.scratch = options.scratch}));
  RHIZOME_ASSIGN_OR_RETURN(job.graph,
                           Graph::Open(std::as_const(*job.store), {.topology = options.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  job.features = features->entry();
  RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
  if (!options.model.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(job.sampling, ResolveSampling(options.sampling, options.edge_weights,
                                                           options.fanouts, *job.graph));
    const Status measurable = options.test ? CheckLayerwise(job.sampling) : Status::Ok();
    if (!measurable.ok()) {
      return Fail(Status::InvalidArgument(
          "the accuracies at the end are computed layer by layer, and that is not how these "
          "neighbours are drawn; train with --no-test, and measure with rhizome infer --mode "
          "samplewise"));
    }
  }
  job.train = job.labels.Members(*job.graph, Split::kTrain);
  job.valid = job.labels.Members(*job.graph, Split::kValid);
  if (job.train.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} puts no vertex into the training set (value 0)", options.split)));
  }
  const ModelShape shape{.spec = options.model,
                         .inputs = static_cast<std::int64_t>(job.features.dim),
                         .classes = job.labels.classes};
  RHIZOME_ASSIGN_OR_RETURN(job.model, Model::Create(shape, options.seed));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(job.features, *job.model, *job.graph));
  return job;
}

/// Returns whether the caller asked for turns, or nothing if it did not say.
std::optional<bool> InTurn(const TrainOptions& options) {
  if (!options.overlap) return std::nullopt;
  return *options.overlap == Overlap::kChangeset;
}

FeedPipelineOptions MakePipelineOptions(const TrainJob& job, const TrainOptions& options) {
  FeedPipelineOptions feed;
  feed.sampler = job.sampling;
  feed.sampler.sampler.seed = options.seed;
  feed.sampler.sampler.threads = std::max<std::uint32_t>(options.threads, 1);
  feed.sampler.no_edges = options.model.no_edges;
  feed.sampler.degrees = options.model.kind == ModelKind::kGcn;
  feed.features = options.features;
  feed.normalize = options.model.normalize_features;
  feed.policy = options.cache;
  feed.io = options.io;
  return feed;
}

/// Returns the accuracy on the test set of always answering the training set's most frequent class,
/// or nothing if there is no test set.
std::optional<double> MajorityAccuracy(const ClassLabels& labels) {
  std::map<std::int32_t, std::uint64_t> counts;
  for (std::size_t row = 0; row < labels.label.size(); ++row) {
    if (labels.split[row] == Split::kTrain) ++counts[labels.label[row]];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  AccuracyCounts accuracy;
  for (std::size_t row = 0; row < labels.label.size(); ++row) {
    accuracy.Add(labels.split[row], labels.label[row] == most->first);
  }
  return accuracy.Of(Split::kTest);
}

/// Measures the accuracy of the kept weights with all neighbours, computed layer by layer in
/// scratch.
Status Measure(const TrainJob& job, const TrainOptions& options, const JobMemoryPlan& memory,
               const Path& scratch, TrainReport& report, const JobControl& control) {
  // All lists are read in order, twice a layer, so a cache of some of them would not help.
  std::unique_ptr<ListsOnDisk> lists;
  if (!options.model.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(lists, ListsOnDisk::Open(*job.graph, options.sampling.direction, 0, {},
                                                      options.io, control));
  }
  LayerwiseOptions layerwise;
  layerwise.features = options.features;
  layerwise.sampling = WithAllNeighbors(job.sampling);
  layerwise.output.name = "evaluation";
  layerwise.output.codec = {.kind = CodecKind::kBloscLz4, .level = 1};
  layerwise.write_output = false;
  layerwise.memory.cache_bytes = memory.cache_bytes;
  layerwise.seed = options.seed;
  if (lists != nullptr) layerwise.neighbors = lists->source();
  layerwise.threads = std::max<std::uint32_t>(options.threads, 1);
  RHIZOME_ASSIGN_OR_RETURN(layerwise.output, MakeOutputEntry(*job.graph, *job.model, layerwise));
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           RunLayerwise({.graph = *job.graph,
                                         .model = *job.model,
                                         .labels = &job.labels,
                                         .scratch = scratch / "evaluation"},
                                        layerwise, control));
  report.valid_accuracy = result.accuracy.Of(Split::kValid);
  report.test_accuracy = result.accuracy.Of(Split::kTest);
  return Status::Ok();
}

/// Describes everything that the weights depend on; a checkpoint is resumed only if its description
/// is equal. The number of epochs is left out, so that a resumed run may have more.
std::string Describe(const TrainJob& job, const TrainOptions& options) {
  const Manifest& manifest = job.store->manifest();
  nlohmann::json description = {{"job", "train"},
                                {"store", job.store->id().ToString()},
                                {"generation", manifest.generation},
                                {"sequence", job.graph->sequence()},
                                {"features", job.features.array_id},
                                {"labels", manifest.FindArray(options.labels)->array_id},
                                {"split", manifest.FindArray(options.split)->array_id},
                                {"model", EncodeModelShape(job.model->shape())},
                                {"fanouts", options.fanouts},
                                {"batch_size", options.batch_size},
                                {"steps", options.steps},
                                {"learning_rate", options.learning_rate},
                                {"weight_decay", options.weight_decay},
                                {"seed", options.seed}};
  if (std::string draws = DescribeDraws(options, job.sampling.edge_weights); !draws.empty())
    description["sampling"] = std::move(draws);
  return description.dump();
}

constexpr const char* kCheckpointName = "CHECKPOINT";
constexpr const char* kSuperbatchFolder = "superbatches";

/// Makes an empty folder for superbatches.
Result<Path> MakeSuperbatchFolder(FileSystem& fs, const Path& scratch) {
  const Path folder = scratch / kSuperbatchFolder;
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  return folder;
}

Status RunEpochs(TrainJob& job, const TrainOptions& options, const EpochPlan& plan, FeedPlan feed,
                 const Path& scratch, TrainReport& report, const JobControl& control) {
  FileSystem& fs = job.store->fs();
  RHIZOME_ASSIGN_OR_RETURN(const Path superbatches, MakeSuperbatchFolder(fs, scratch));
  RHIZOME_RETURN_IF_ERROR(feed.Prepare(*job.graph, superbatches, control));
  StageTrace trace;
  if (!options.trace.empty()) feed.pipeline.trace = &trace;
  const TrainingRunOptions run_options{.epochs = options.epochs,
                                       .learning_rate = options.learning_rate,
                                       .weight_decay = options.weight_decay,
                                       .seed = options.seed,
                                       .features = options.features,
                                       .checkpoint_every = options.checkpoint_every,
                                       .checkpoint = scratch / kCheckpointName,
                                       .job = Describe(job, options)};
  TrainingRun run(*job.model, job.labels, run_options, plan, feed.pipeline.trace);
  // The pipeline asks a copy, on its own thread, for what the run counts on this one.
  EpochPlan seeds = plan;
  if (options.resume) {
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                             LoadCheckpoint(fs, run_options.checkpoint, run_options.job));
    if (checkpoint) {
      RHIZOME_RETURN_IF_ERROR(run.Resume(*checkpoint));
      seeds.Skip(run.progress().done);
      report.resumed_minibatches = run.progress().done;
    }
  }
  {
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<FeedPipeline> pipeline,
        FeedPipeline::Open(
            *job.graph, feed.pipeline, [seeds]() mutable { return seeds.Next(); }, control));
    const Status status = run.Run(*pipeline, control);
    const RowReaderStats reads = pipeline->reader_stats();
    report.maker = reads.maker;
    report.direct = reads.direct;
    report.mean_depth = reads.mean_depth;
    RHIZOME_RETURN_IF_ERROR(status);
  }
  report.epochs = run.progress().epochs;
  report.best_epoch = run.progress().best_epoch;
  if (feed.pipeline.lists != nullptr) report.list_reads = feed.pipeline.lists->report();
  if (!options.trace.empty()) RHIZOME_RETURN_IF_ERROR(trace.Write(options.trace));
  return RemoveTree(fs, superbatches);
}

/// Divides the memory by what the first minibatches lead to expect, and adds the plan to the
/// report.
Result<FeedPlan> PlanJob(const TrainJob& job, const TrainOptions& options, const EpochPlan& plan,
                         TrainReport& report, const JobControl& control) {
  const FeedJob feed_job{
      .graph = *job.graph,
      .pipeline = MakePipelineOptions(job, options),
      .fixed = {.cache_bytes = options.cache_bytes,
                .superbatch = options.superbatch,
                .neighbor_cache_bytes = options.neighbor_cache_bytes,
                .in_turn = InTurn(options)},
      .memory_bytes = options.memory_bytes,
      .held_bytes = [base = report.base_memory_bytes] { return HeldBytes(base); },
      .compute_bytes =
          [&job](const Minibatch& minibatch) { return StepBytes(minibatch, job.model->shape()); }};
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanFeed(feed_job, plan, control));
  report.profile = feed.profile;
  report.superbatch = feed.memory.superbatch;
  report.overlap = feed.pipeline.overlap;
  report.memory = {.held = feed.needs.held_bytes,
                   .working = feed.needs.working_bytes,
                   .schedules = feed.memory.superbatch * feed.needs.schedule_bytes,
                   .cache = feed.memory.cache_bytes,
                   .neighbor_cache = feed.memory.neighbor_cache_bytes};
  return feed;
}

/// Trains and measures, and completes the report. If it fails, the checkpoint stays in the scratch
/// folder.
Status RunTraining(TrainJob& job, const TrainOptions& options, JobScratch& scratch,
                   TrainReport& report, const JobControl& control) {
  const EpochPlan plan(job.train, job.valid,
                       {.batch_size = options.batch_size,
                        .epochs = options.epochs,
                        .seed = options.seed,
                        .most_train_batches = options.steps});
  RHIZOME_ASSIGN_OR_RETURN(FeedPlan feed, PlanJob(job, options, plan, report, control));
  const JobMemoryPlan memory = feed.memory;
  report.minibatches = plan.train_batches() + plan.valid_batches();
  RHIZOME_RETURN_IF_ERROR(
      RunEpochs(job, options, plan, std::move(feed), scratch.folder(), report, control));
  report.majority_accuracy = MajorityAccuracy(job.labels);
  if (!options.test) return Status::Ok();
  return Measure(job, options, memory, scratch.folder(), report, control);
}

}  // namespace

// Trains a model in these steps:
// 1. Opens the store, the graph, the labels and the model (OpenJob), and locks the job's scratch
//    folder.
// 2. Samples the first minibatches and divides the memory among superbatch, cache and neighbour
//    cache (PlanJob).
// 3. Runs the epochs: a Loader delivers minibatches, a TrainingRun learns from them, evaluates the
//    validation set and writes checkpoints (RunEpochs).
// 4. Measures the accuracy of the best epoch's weights with all neighbours (Measure).
// 5. Writes the model file and removes the scratch folder.
Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control) {
  TrainReport report;
  report.base_memory_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  SetTorchThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(TrainJob job, OpenJob(options));
  report.valid_vertices = job.valid.size();
  if (!options.model.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(report.ignored,
                             IgnoredFacts(*job.graph, {.sampling = options.sampling,
                                                       .edge_weights = job.sampling.edge_weights,
                                                       .training = job.train}));
  }
  report.direction = options.sampling.direction;
  report.edge_weights = job.sampling.edge_weights;
  TellIgnored(report.ignored, options.note);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(*job.store, options.job,
                                            options.resume ? JobScratch::Leftovers::kKeep
                                                           : JobScratch::Leftovers::kRemove));
  if (options.checkpoint_every > 0 || options.resume) scratch->Keep();
  const Status status = RunTraining(job, options, *scratch, report, control);
  if (!status.ok()) {
    // Only the checkpoint can be used again.
    RHIZOME_RETURN_IF_ERROR(RemoveTree(job.store->fs(), scratch->folder() / kSuperbatchFolder));
    return Fail(status);
  }
  if (!options.out.empty()) {
    RHIZOME_RETURN_IF_ERROR(SaveSafetensors(options.out, job.model->ToFile()));
    report.model = options.out.string();
  }
  scratch->RemoveAtEnd();
  report.peak_memory_bytes = PeakResidentBytes();
  return report;
}

}  // namespace rhizome::inline internal
