#include "rhizome/gnn/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rhizome/gnn/compute_threads.h"
#include "rhizome/gnn/epoch_plan.h"
#include "rhizome/gnn/job_scratch.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/lists_on_disk.h"
#include "rhizome/gnn/loader.h"
#include "rhizome/gnn/memory_plan.h"
#include "rhizome/gnn/process_memory.h"
#include "rhizome/gnn/simd.h"
#include "rhizome/gnn/training_run.h"

namespace rhizome {
namespace {

/// Memory for what libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

/// Bytes for one access: of trace and schedule while a superbatch is scheduled, and of the schedule
/// of the one before, which is in use.
constexpr std::uint64_t kScheduleBytesPerAccess = 48 + 4;
constexpr std::uint64_t kCostScheduleBytesPerAccess = 64 + 4;

/// Bytes of a minibatch for each of its rows, besides features: number, plan of the pool, degree.
constexpr std::uint64_t kRowBytes = 48;

/// Minibatches that are in memory at once: in the loader, and computed on.
constexpr std::uint64_t kMinibatchesAlive = kMinibatchesAhead + 1;

struct TrainJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
  Labels labels;
  std::vector<VertexId> train;
  std::vector<VertexId> valid;
  ArrayEntry features;
  std::optional<Model> model;
};

Status CheckOptions(const TrainOptions& options) {
  if (!options.model.no_edges && options.fanouts.size() != options.model.layers) {
    return Status::InvalidArgument(
        fmt::format("{} fanouts for {} layers; give one for each layer, such as --fanout 10,10",
                    options.fanouts.size(), options.model.layers));
  }
  if (options.batch_size == 0 || options.epochs == 0) {
    return Status::InvalidArgument("batch size and epochs must be at least 1");
  }
  if (!(options.learning_rate > 0) || !(options.weight_decay >= 0)) {
    return Status::InvalidArgument(
        "the learning rate must be positive, the weight decay not negative");
  }
  // Better to learn now than after hours that a result cannot be written.
  for (const Path& path : {options.out, options.trace}) {
    if (path.empty()) continue;
    const Result<OutputFile> probe = OutputFile::Create(path);
    if (!probe) return probe.error();
  }
  return Status::Ok();
}

Result<TrainJob> OpenJob(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  TrainJob job;
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(*job.store, {.topology = options.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  job.features = features->entry();
  RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
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

MinibatchSamplerOptions SamplerOptionsOf(const TrainOptions& options) {
  return {.fanouts = options.fanouts,
          .no_edges = options.model.no_edges,
          .degrees = options.model.kind == ModelKind::kGcn,
          .seed = options.seed,
          .threads = std::max<std::uint32_t>(options.threads, 1)};
}

/// What the caller says of turns, if anything.
std::optional<bool> InTurn(const TrainOptions& options) {
  if (!options.overlap) return std::nullopt;
  return *options.overlap == Overlap::kChangeset;
}

/// Null where lists are in memory, or not read at all.
Result<std::unique_ptr<ListsOnDisk>> OpenLists(const TrainJob& job, const TrainOptions& options,
                                               std::uint64_t cache_bytes, const Path& dump,
                                               const JobControl& control) {
  if (options.topology == TopologyPlace::kMemory || options.model.no_edges)
    return std::unique_ptr<ListsOnDisk>();
  return ListsOnDisk::Open(*job.graph, cache_bytes, dump, options.io, control);
}

std::shared_ptr<const NeighborSource> SourceOf(const std::unique_ptr<ListsOnDisk>& lists) {
  return lists == nullptr ? nullptr : lists->source();
}

/// Minibatches differ: an eighth more than the first.
std::uint64_t WithMargin(std::uint64_t bytes) { return bytes + bytes / 8; }

/// Rows that minibatches hold beside the pool, of minibatches of `rows` rows: all without a pool;
/// with one, what misses of all that are alive at once, which is less than one minibatch that
/// misses all (and reading waits where it is not).
std::uint64_t HeldRowsOf(const TrainOptions& options, std::uint64_t rows) {
  const bool pool = options.cache != PolicyKind::kNone && options.cache_bytes.value_or(1) > 0;
  return pool ? rows + rows / 4 : kMinibatchesAlive * rows;
}

/// What a step holds besides its features: of every layer the rows that it multiplies (a vertex's
/// own beside its neighbours' sum), what comes of them, and the gradients of both.
std::uint64_t ActivationBytes(const Minibatch& minibatch, const ModelShape& shape) {
  const std::vector<std::uint64_t>& offsets = minibatch.hop_offsets;
  const std::uint64_t layers = shape.spec.layers, last = offsets.size() - 2;
  const auto hidden = static_cast<std::uint64_t>(shape.spec.hidden);
  std::uint64_t numbers = 0;
  for (std::uint64_t k = 0; k < layers; ++k) {
    const std::uint64_t hop = std::min(layers - 1 - k, last);
    const std::uint64_t targets = offsets[hop + 1];
    const std::uint64_t sources = offsets[std::min(hop + 1, last) + 1];
    const std::uint64_t in = k == 0 ? static_cast<std::uint64_t>(shape.inputs) : hidden;
    numbers += targets * (2 * in + 3 * hidden);
    if (k > 0) numbers += sources * in + targets * 2 * in;
    if (in > hidden) numbers += 2 * sources * hidden;  // it may multiply before it adds up
  }
  return numbers * sizeof(float);
}

/// Samples the first minibatch to learn how large they are.
Result<MemoryNeeds> MeasureNeeds(const TrainJob& job, const TrainOptions& options,
                                 const EpochPlan& plan, std::uint64_t base_bytes,
                                 const JobControl& control) {
  EpochPlan probe = plan;
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, 0, {}, control));
  RHIZOME_ASSIGN_OR_RETURN(
      const MinibatchSampler sampler,
      MinibatchSampler::Create(*job.graph, SamplerOptionsOf(options), SourceOf(lists)));
  RHIZOME_ASSIGN_OR_RETURN(const Minibatch minibatch, sampler.Sample(*probe.Next()));
  const std::uint64_t rows = WithMargin(minibatch.rows.size());
  const std::uint64_t edges = WithMargin(minibatch.csr.neighbors.size());
  const std::uint64_t feature_bytes = options.model.normalize_features
                                          ? job.features.dim * sizeof(float)
                                          : job.features.row_bytes();
  MemoryNeeds needs;
  needs.held_rows = HeldRowsOf(options, rows);
  needs.working_bytes = kSlackBytes + RowReaderOptions().staging_bytes + 4 * job.features.rows +
                        needs.held_rows * feature_bytes +
                        kMinibatchesAlive * (rows * kRowBytes + edges * 5) + rows * 40 +
                        edges * 24 +  // of the one that is being sampled
                        WithMargin(ActivationBytes(minibatch, job.model->shape()));
  needs.schedule_bytes = rows * (options.cache == PolicyKind::kCost ? kCostScheduleBytesPerAccess
                                                                    : kScheduleBytesPerAccess);
  needs.cacheable_bytes = job.features.rows * job.features.row_bytes();
  if (lists != nullptr) {
    const NeighborCache::Needs cache = NeighborCache::NeedsOf(*job.graph, Direction::kIn);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
    needs.working_bytes += ListsOnDisk::WorkingBytes(edges);
  }
  needs.minibatches = (plan.train_batches() + plan.valid_batches()) * options.epochs;
  const std::uint64_t now = ResidentBytes();
  needs.held_bytes = now > base_bytes ? now - base_bytes : 0;
  return needs;
}

LoaderOptions MakeLoaderOptions(const TrainOptions& options, const MemoryPlan& memory,
                                const Path& scratch) {
  LoaderOptions loader;
  loader.sampler = SamplerOptionsOf(options);
  loader.features = options.features;
  loader.normalize = options.model.normalize_features;
  loader.policy = options.cache;
  loader.cache_bytes = memory.cache_bytes;
  loader.held_rows = memory.held_rows;
  loader.superbatch = memory.superbatch;
  loader.overlap = memory.in_turn ? Overlap::kChangeset : Overlap::kAll;
  loader.io = options.io;
  loader.scratch = scratch;
  return loader;
}

/// Accuracy on the test set of always answering the training set's most frequent class.
double MajorityAccuracy(const Labels& labels) {
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
  return accuracy.Share(Split::kTest);
}

/// Accuracy of the kept weights with all neighbours, computed layer by layer in scratch.
Status Measure(const TrainJob& job, const TrainOptions& options, const MemoryPlan& memory,
               const Path& scratch, TrainReport& report, const JobControl& control) {
  // All lists are read in order, each twice a layer: no cache of a part of them would help.
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, 0, {}, control));
  LayerwiseOptions layerwise;
  layerwise.features = options.features;
  layerwise.output.name = "evaluation";
  layerwise.output.codec = {.kind = CodecKind::kBloscLz4, .level = 1};
  layerwise.write_output = false;
  layerwise.cache_bytes = memory.cache_bytes;
  layerwise.seed = options.seed;
  layerwise.neighbors = SourceOf(lists);
  layerwise.threads = std::max<std::uint32_t>(options.threads, 1);
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           RunLayerwise(*job.graph, *job.model, &job.labels, scratch / "evaluation",
                                        nullptr, layerwise, control));
  report.valid_accuracy = result.accuracy.Share(Split::kValid);
  report.test_accuracy = result.accuracy.Share(Split::kTest);
  return Status::Ok();
}

/// All that the weights depend on; a checkpoint is continued only where it is equal. More epochs
/// are welcome.
std::string Describe(const TrainJob& job, const TrainOptions& options) {
  const Manifest& manifest = job.store->manifest();
  const nlohmann::json description = {{"job", "train"},
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
  return description.dump();
}

constexpr const char* kCheckpointName = "CHECKPOINT";
constexpr const char* kSuperbatchFolder = "superbatches";

/// A folder for superbatches, empty.
Result<Path> MakeSuperbatchFolder(FileSystem& fs, const Path& scratch) {
  const Path folder = scratch / kSuperbatchFolder;
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder));
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  return folder;
}

Status RunEpochs(TrainJob& job, const TrainOptions& options, const EpochPlan& plan,
                 const MemoryPlan& memory, const Path& scratch, TrainReport& report,
                 const JobControl& control) {
  FileSystem& fs = job.store->fs();
  RHIZOME_ASSIGN_OR_RETURN(const Path superbatches, MakeSuperbatchFolder(fs, scratch));
  const Path dump = memory.in_turn ? superbatches / "neighbor-cache" : Path();
  RHIZOME_ASSIGN_OR_RETURN(const auto lists,
                           OpenLists(job, options, memory.neighbor_cache_bytes, dump, control));
  LoaderOptions loader_options = MakeLoaderOptions(options, memory, superbatches);
  loader_options.neighbors = SourceOf(lists);
  if (lists != nullptr) {
    loader_options.lend_memory = [&lists] { return lists->Lend(); };
    loader_options.take_memory_back = [&lists] { lists->TakeBack(); };
  }
  StageTrace trace;
  if (!options.trace.empty()) loader_options.trace = &trace;
  const TrainingRunOptions run_options{.epochs = options.epochs,
                                       .learning_rate = options.learning_rate,
                                       .weight_decay = options.weight_decay,
                                       .seed = options.seed,
                                       .features = options.features,
                                       .checkpoint_every = options.checkpoint_every,
                                       .checkpoint = scratch / kCheckpointName,
                                       .job = Describe(job, options)};
  TrainingRun run(*job.model, job.labels, run_options, plan, loader_options.trace);
  // The loader asks a copy, on its own thread, for what the run counts on this one.
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
        const std::unique_ptr<Loader> loader,
        Loader::Open(
            *job.graph, loader_options, [seeds]() mutable { return seeds.Next(); }, control));
    const Status status = run.Run(*loader, control);
    const RowReaderStats reads = loader->reader_stats();
    report.maker = reads.maker;
    report.direct = reads.direct;
    report.mean_depth = reads.mean_depth;
    RHIZOME_RETURN_IF_ERROR(status);
  }
  report.epochs = run.progress().epochs;
  report.best_epoch = run.progress().best_epoch;
  if (lists != nullptr) report.list_reads = lists->report();
  if (!options.trace.empty()) RHIZOME_RETURN_IF_ERROR(trace.Write(options.trace));
  return RemoveTree(fs, superbatches);
}

/// Runs to the end of the report. What a checkpoint needs stays if it does not come to that.
Status RunJob(TrainJob& job, const TrainOptions& options, JobScratch& scratch, TrainReport& report,
              const JobControl& control) {
  const EpochPlan plan(job.train, job.valid, options.batch_size, options.epochs, options.seed,
                       options.steps);
  RHIZOME_ASSIGN_OR_RETURN(const MemoryNeeds needs,
                           MeasureNeeds(job, options, plan, report.base_memory_bytes, control));
  RHIZOME_ASSIGN_OR_RETURN(const MemoryPlan memory,
                           PlanMemory(options.memory_bytes,
                                      {.cache_bytes = options.cache_bytes,
                                       .superbatch = options.superbatch,
                                       .neighbor_cache_bytes = options.neighbor_cache_bytes,
                                       .in_turn = InTurn(options)},
                                      needs));
  report.superbatch = memory.superbatch;
  report.overlap = memory.in_turn ? Overlap::kChangeset : Overlap::kAll;
  report.memory = {.held = needs.held_bytes,
                   .working = needs.working_bytes,
                   .schedules = memory.superbatch * needs.schedule_bytes,
                   .cache = memory.cache_bytes,
                   .neighbor_cache = memory.neighbor_cache_bytes};
  report.minibatches = plan.train_batches() + plan.valid_batches();
  RHIZOME_RETURN_IF_ERROR(RunEpochs(job, options, plan, memory, scratch.folder(), report, control));
  report.majority_accuracy = MajorityAccuracy(job.labels);
  if (!options.test) return Status::Ok();
  return Measure(job, options, memory, scratch.folder(), report, control);
}

}  // namespace

Result<TrainReport> TrainModel(const TrainOptions& options, const JobControl& control) {
  TrainReport report;
  report.base_memory_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  SetComputeThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(TrainJob job, OpenJob(options));
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(job.store->fs(), options.store, options.job,
                                            options.resume ? JobScratch::Leftovers::kKeep
                                                           : JobScratch::Leftovers::kRemove));
  if (options.checkpoint_every > 0 || options.resume) scratch->Keep();
  const Status status = RunJob(job, options, *scratch, report, control);
  if (!status.ok()) {
    // Of what stays only the checkpoint is of use.
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

}  // namespace rhizome
