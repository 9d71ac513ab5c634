#include "rhizome/gnn/infer.h"

#include <fmt/format.h>

#include <numeric>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/job_scratch.h"
#include "rhizome/cache/pass_order.h"
#include "rhizome/cache/pass_plan.h"
#include "rhizome/cache/process_memory.h"
#include "rhizome/cache/simd.h"
#include "rhizome/cache/work_clock.h"
#include "rhizome/gnn/ignored_facts.h"
#include "rhizome/gnn/incremental.h"
#include "rhizome/gnn/infer_job.h"
#include "rhizome/gnn/inference_workers.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/samplewise_inference.h"
#include "rhizome/gnn/torch_threads.h"
#include "rhizome/index/publish_array.h"
#include "rhizome/storage/array_change.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome {
namespace {

/// Publishes the result as the options say, in the generation that is current by then. Returns the
/// array's name as users write it: emb, or emb@3.
Result<std::string> Publish(const Store& store, const InferOptions& options,
                            const ArraySource& source, const JobControl& control) {
  std::string name = options.out;
  const auto steps = [&](ArrayChange& change, const ArraySource& moved) -> Status {
    if (!options.new_version && !options.live && options.keep == 0) {
      RHIZOME_RETURN_IF_ERROR(change.Add(moved));
      return Status::Ok();
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::string stored, change.AddVersion(moved, options.out));
    const std::uint64_t version = SplitVersion(stored)->second;
    name = fmt::format("{}@{}", options.out, version);
    if (options.live) RHIZOME_RETURN_IF_ERROR(change.SetAlias(options.out, kLiveAlias, version));
    if (options.keep > 0) RHIZOME_RETURN_IF_ERROR(change.KeepNewest(options.out, options.keep));
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(PublishMade(options.store, {store, source}, control, steps));
  return name;
}

/// Computes the rows that may have changed, in layers of those vertices alone, and writes the
/// merged array.
Result<LayerwiseResult> RunIncremental(const InferJob& job, const LayerwiseOptions& options,
                                       const IncrementalBase& base, const Path& scratch,
                                       InferenceLog* log, const JobControl& control) {
  const ClassLabels* labels = job.labels ? &*job.labels : nullptr;
  LayerwiseResult result;
  if (base.stale.empty()) {
    result.layers.resize(job.model->shape().spec.layers);
  } else {
    LayerwiseOptions stale_only = options;
    stale_only.targets = base.stale;
    RHIZOME_ASSIGN_OR_RETURN(
        result, RunLayerwise(*job.graph, *job.model, nullptr, scratch, log, stale_only, control));
  }
  RHIZOME_ASSIGN_OR_RETURN(ArrayEntry output, MakeOutputEntry(*job.graph, *job.model, options));
  RHIZOME_ASSIGN_OR_RETURN(MergedArray merged,
                           MergeIncremental({.graph = *job.graph,
                                             .model = *job.model,
                                             .labels = labels,
                                             .scores = options.scores,
                                             .layer = job.model->shape().spec.layers,
                                             .output = std::move(output)},
                                            base, result.output, scratch / "merged", log, control));
  result.output = std::move(merged.written);
  result.accuracy = merged.accuracy;
  result.resumed_chunks += merged.resumed_chunks;
  return result;
}

Result<LayerwiseResult> RunJob(const InferJob& job, const InferOptions& options,
                               const LayerwiseOptions& made, const IncrementalBase* base,
                               const JobScratch& scratch, const JobControl& control) {
  const ClassLabels* labels = job.labels ? &*job.labels : nullptr;
  if (options.mode == InferMode::kSamplewise) {
    return RunSamplewise(*job.graph, *job.model, labels, scratch.folder(), made, control);
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceLog> log,
                           InferenceLog::Open(job.store->fs(), scratch.folder() / "LOG",
                                              DescribeInferJob(job, options, base)));
  if (base != nullptr) {
    return RunIncremental(job, made, *base, scratch.folder(), log.get(), control);
  }
  return RunLayerwise(*job.graph, *job.model, labels, scratch.folder(), log.get(), made, control);
}

/// Returns the base of an incremental run, if it is one and has a base.
Result<IncrementalPlan> FindBase(const InferJob& job, const InferOptions& options,
                                 const LayerwiseOptions& made) {
  if (!options.incremental) return IncrementalPlan{};
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry entry, MakeOutputEntry(*job.graph, *job.model, made));
  return PlanIncremental(*job.graph, entry);
}

InferReport MakeReport(const LayerwiseResult& result, const InferJob& job,
                       const InferOptions& options, double seconds) {
  InferReport report;
  report.layers = result.layers;
  report.vertices = job.graph->vertex_count();
  report.seconds = seconds;
  report.vertices_per_second = static_cast<double>(report.vertices) / std::max(seconds, 1e-9);
  report.valid_accuracy = result.accuracy.Of(Split::kValid);
  report.test_accuracy = result.accuracy.Of(Split::kTest);
  report.resumed_chunks = result.resumed_chunks;
  report.array = options.out;
  return report;
}

/// Block rows of a worker, which holds no sums.
constexpr std::uint64_t kWorkerBlockRows = 1024;

/// Adds what workers with disk caches of their own would read in a layer.
Status PlanWorkers(const GraphSnapshot& graph, const Model& model, const LayerwiseOptions& options,
                   std::uint32_t layer, const LayerReads& reads, const JobControl& control,
                   InferPlanLayer& planned) {
  const std::uint32_t layers = model.shape().spec.layers;
  const PassPlanOptions pass{
      .draw = {.fanout =
                   options.fanouts.empty() ? kAllNeighbors : options.fanouts[layers - 1 - layer],
               .no_edges = model.shape().spec.no_edges,
               .seed = options.seed,
               .layer = layer,
               .threads = options.threads,
               .neighbors = options.neighbors},
      .shape = {.block_rows =
                    RoundUpToTiles(options.block_rows == 0 ? kWorkerBlockRows : options.block_rows),
                .chunk_rows = reads.source.chunk_rows},
      .output_chunk_rows = LayerEntry(graph, model, layer, options).chunk_rows,
      .cache_chunks = options.cache_bytes / ChunkReader::DecodedBytes(reads.source),
      .cache = options.policy};
  RHIZOME_ASSIGN_OR_RETURN(const PassPlan plan, PlanPass(graph, pass, control));
  planned.worker_chunks = plan.worker_chunks;
  planned.chosen_requests = plan.chosen_requests;
  planned.chosen_reads = plan.chosen_reads;
  for (const LayoutCost& cost : plan.layouts) {
    planned.layouts.push_back({LayoutName(cost.rule), cost.requests, cost.reads});
  }
  for (const LayoutRule& rule : plan.chosen) planned.chosen_layouts.push_back(LayoutName(rule));
  return Status::Ok();
}

}  // namespace

Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control) {
  const Stopwatch watch;
  const std::uint64_t base_bytes = ResidentBytes();
  SetTorchThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(const InferJob job, OpenInferJob(options, /*no_output=*/true));
  RHIZOME_ASSIGN_OR_RETURN(InferMemory memory, MakeLayerwiseOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenInferLists(job, options, memory, control));
  LayerwiseOptions& made = memory.options;
  RHIZOME_ASSIGN_OR_RETURN(made.output, MakeOutputEntry(*job.graph, *job.model, made));
  InferPlan plan{.layers = {},
                 .vertices = job.graph->vertex_count(),
                 .workers = job.graph->partition_count(),
                 .cache_bytes = made.cache_bytes,
                 .seconds = 0};
  RHIZOME_ASSIGN_OR_RETURN(
      const std::vector<LayerReads> layers,
      PlanLayerwise(*job.graph, *job.model, *job.store->manifest().FindArray(options.features),
                    made, control));
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
    const LayerReads& reads = layers[layer];
    InferPlanLayer planned;
    planned.source = reads.source.name;
    planned.chunk_rows = reads.source.chunk_rows;
    planned.chunks = reads.chunks;
    planned.cache_chunks = reads.cache_chunks;
    planned.chunk_requests = reads.requests;
    planned.chunk_reads = reads.reads;
    planned.layout = RowRuleName(reads.layout);
    RHIZOME_RETURN_IF_ERROR(
        PlanWorkers(*job.graph, *job.model, made, layer, reads, control, planned));
    plan.layers.push_back(std::move(planned));
  }
  plan.seconds = watch.seconds();
  return plan;
}

namespace {

Status CheckMode(const InferOptions& options) {
  if (options.mode == InferMode::kSamplewise) {
    if (options.resume) return Status::InvalidArgument("--resume works in layerwise mode only");
    if (options.incremental) {
      return Status::InvalidArgument("--incremental works in layerwise mode only");
    }
    if (options.topology == TopologyPlace::kDirect) {
      return Status::InvalidArgument("--topology direct works in layerwise mode only");
    }
    if (options.workers != 0) {
      return Status::InvalidArgument("--workers work in layerwise mode only");
    }
  }
  if (options.workers != 0 && options.incremental) {
    return Status::InvalidArgument("--workers and --incremental do not go together");
  }
  return Status::Ok();
}

/// Returns a child's share of what --memory leaves beside this process's graph; 0: no limit.
Result<std::uint64_t> WorkerBytes(const InferOptions& options, std::uint64_t base_bytes) {
  if (options.memory_bytes == 0) return 0;
  const std::uint64_t now = ResidentBytes();
  const std::uint64_t held = (now > base_bytes ? now - base_bytes : 0) + kInferSlackBytes;
  const std::uint64_t left = options.memory_bytes - std::min(options.memory_bytes, held);
  const std::uint64_t share = left / options.workers;
  if (share >> 20 == 0) {
    return Fail(Status::OutOfMemory(
        fmt::format("a memory limit of {} MiB leaves nothing to {} workers beside {} MiB of this "
                    "process; raise the limit or take fewer",
                    options.memory_bytes >> 20, options.workers, held >> 20)));
  }
  return share;
}

/// Starts the child processes of the job, if it has any.
Result<std::unique_ptr<InferenceWorkers>> StartWorkers(const InferOptions& options,
                                                       std::uint64_t base_bytes) {
  if (options.workers == 0) return std::unique_ptr<InferenceWorkers>();
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, WorkerBytes(options, base_bytes));
  std::vector<std::string> command = options.worker_command;
  command.push_back(fmt::format("{}", bytes));
  return InferenceWorkers::Start(command, options.workers);
}

/// Returns the options of a child: its share of memory and threads.
InferOptions OfWorker(InferOptions options) {
  options.memory_bytes = *options.worker_of_bytes;
  options.threads = std::max<std::uint32_t>(options.threads / std::max(options.workers, 1U), 1);
  return options;
}

/// The opened inputs of a worker.
struct WorkerJob {
  InferJob job;
  InferMemory memory;
  std::unique_ptr<ListsOnDisk> lists;
};

Result<WorkerJob> OpenWorkerJob(const InferOptions& options, std::uint64_t base_bytes,
                                const JobControl& control) {
  WorkerJob made;
  RHIZOME_ASSIGN_OR_RETURN(made.job, OpenInferJob(options, /*no_output=*/true));
  RHIZOME_ASSIGN_OR_RETURN(made.memory, MakeLayerwiseOptions(made.job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(made.lists, OpenInferLists(made.job, options, made.memory, control));
  return made;
}

/// Serves another process's job as a worker until that is done. Errors are sent to the other
/// process, which reports them.
void WorkFor(const InferOptions& options, std::uint64_t base_bytes, const JobControl& control) {
  SetTorchThreads(options.threads);
  const Result<WorkerJob> opened = OpenWorkerJob(options, base_bytes, control);
  static_cast<void>(ServeInference(
      [&](const WorkerTask& task, ChunkProgress progress) -> Result<InferLayerReport> {
        if (!opened) return Fail(opened.error());
        const InferJob& job = opened->job;
        const Path scratch = JobScratch::FolderOf(*job.store, InferScratchName(options));
        auto log = InferenceLog::Read(job.store->fs(), scratch / "LOG",
                                      DescribeInferJob(job, options, nullptr));
        if (!log && log.error().code() == StatusCode::kInvalidArgument) {
          return Fail(Status::Busy("the store was written to while workers started; run it again"));
        }
        if (!log) return Fail(log.error());
        return RunLayerPart(*job.graph, *job.model, job.labels ? &*job.labels : nullptr, scratch,
                            **log, opened->memory.options, {task.stage, task.begin, task.end},
                            std::move(progress), control);
      }));
}

/// Reports a job that finds its array published: an earlier run was killed after publishing, or the
/// job was started twice. Removes what that run left.
Result<InferReport> PublishedBefore(const InferJob& job, const InferOptions& options,
                                    const std::string& array) {
  static_cast<void>(
      JobScratch::Open(*job.store, InferScratchName(options), JobScratch::Leftovers::kRemove));
  InferReport report;
  report.vertices = job.graph->vertex_count();
  report.array = array;
  report.published_before = true;
  return report;
}

/// Adds the memory of all processes of the job.
void AddMemory(const InferenceWorkers* workers, std::uint64_t base_bytes, InferReport& report) {
  report.base_memory_bytes = base_bytes;
  report.own_peak_memory_bytes = PeakResidentBytes();
  if (workers != nullptr) report.worker_peak_memory_bytes = workers->PeakBytes();
  report.peak_memory_bytes =
      std::accumulate(report.worker_peak_memory_bytes.begin(),
                      report.worker_peak_memory_bytes.end(), report.own_peak_memory_bytes);
}

// Computes and publishes an array:
// 1. Opens the store, the model, the graph and the labels; ends if an earlier run has published
//    already.
// 2. Locks the job's scratch folder and starts the child processes, if there are any.
// 3. Divides the memory, opens the lists on disk, and finds the base of an incremental run.
// 4. Computes the layers (RunJob).
// 5. Publishes the array in the current generation and removes the scratch folder.
Result<InferReport> InferAndPublish(const InferOptions& options, std::uint64_t base_bytes,
                                    const JobControl& control) {
  const WorkClock clock;
  RHIZOME_ASSIGN_OR_RETURN(const InferJob job, OpenInferJob(options));
  if (job.published) {
    RHIZOME_ASSIGN_OR_RETURN(InferReport report, PublishedBefore(job, options, *job.published));
    AddMemory(nullptr, base_bytes, report);
    return report;
  }
  std::vector<std::string> ignored;
  if (!job.model->shape().spec.no_edges) ignored = IgnoredFacts(*job.graph);
  TellIgnored(ignored, options.note);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(*job.store, InferScratchName(options),
                                            options.resume ? JobScratch::Leftovers::kKeep
                                                           : JobScratch::Leftovers::kRemove));
  // Whatever stops a layerwise run, its finished chunks can be resumed.
  if (options.mode == InferMode::kLayerwise) scratch->Keep();
  RHIZOME_ASSIGN_OR_RETURN(const auto workers, StartWorkers(options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(InferMemory memory, MakeLayerwiseOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenInferLists(job, options, memory, control));
  memory.options.workers = workers.get();
  RHIZOME_ASSIGN_OR_RETURN(const IncrementalPlan incremental,
                           FindBase(job, options, memory.options));
  const IncrementalBase* const base = incremental.base ? &*incremental.base : nullptr;
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           RunJob(job, options, memory.options, base, *scratch, control));
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  RHIZOME_ASSIGN_OR_RETURN(
      const std::string published,
      Publish(*job.store, options, {result.output.arrays, result.output.root, result.output.files},
              control));
  scratch->RemoveAtEnd();
  InferReport report = MakeReport(result, job, options, clock.seconds());
  report.cpu_seconds = clock.cpu_seconds();
  report.array = published;
  report.kept = base == nullptr ? 0 : report.vertices - base->stale.size();
  report.full_because = incremental.full_because;
  report.ignored = std::move(ignored);
  AddMemory(workers.get(), base_bytes, report);
  if (lists != nullptr) report.list_reads = lists->report();
  return report;
}

}  // namespace

Result<InferReport> InferArray(const InferOptions& given, const JobControl& control) {
  InferOptions options = given;
  if (options.incremental) options.new_version = true;
  const std::uint64_t base_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckMode(options));
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  if (options.worker_of_bytes) {
    WorkFor(OfWorker(options), base_bytes, control);
    return InferReport{};
  }
  SetTorchThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(InferReport report, InferAndPublish(options, base_bytes, control));
  // Dropped versions could not be removed while the job itself read the store.
  if (options.keep > 0)
    static_cast<void>(ArrayChange::RemoveDropped(FileSystem::Posix(), options.store));
  return report;
}

}  // namespace rhizome
