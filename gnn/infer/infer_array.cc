#include "gnn/infer/infer_array.h"

#include <fmt/format.h>

#include <numeric>

#include "cache/job/job_scratch.h"
#include "cache/job/process_memory.h"
#include "cache/job/work_clock.h"
#include "cache/kernels/simd.h"
#include "gnn/infer/inference_job.h"
#include "gnn/infer/inference_memory.h"
#include "gnn/infer/inference_workers.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/infer/non_finite_report.h"
#include "gnn/infer/samplewise_run.h"
#include "gnn/models/ignored_facts.h"
#include "gnn/ops/torch_threads.h"
#include "index/arrays/publish_array.h"
#include "rhizome/array_change.h"
#include "storage/array/array_versions.h"
#include "storage/io/outside.h"
#include "storage/remote/job_parts.h"
#include "storage/store/caller_path.h"

// InferArray works in these steps: (1) check the options and open the device, if one is requested;
// (2) open the job, and stop if an earlier run has already published its array; (3) open the
// scratch folder and start child processes; (4) divide the memory and find the base of an
// incremental run; (5) compute all layers; (6) search the result for NaN and infinite values; (7)
// publish the result or pass it to the caller; (8) build the report.

namespace rhizome {
inline namespace internal {
namespace {

Status CheckMode(const InferOptions& options) {
  if (options.mode == InferMode::kSamplewise) RHIZOME_RETURN_IF_ERROR(CheckSamplewise(options));
  if (options.workers.count > MaxPartsOfJob()) {
    return Status::InvalidArgument(
        fmt::format("{} workers are too many: this machine supports at most {}",
                    options.workers.count, MaxPartsOfJob()));
  }
  if (options.workers.ranges != InferWorkers::Ranges::kLearned && options.workers.count == 0)
    return Status::InvalidArgument("the ranges of workers need `workers`; set it as well");
  if (!options.workers.costs.empty()) {
    if (options.workers.count == 0)
      return Status::InvalidArgument("the costs of workers need `workers`; set it as well");
    RHIZOME_RETURN_IF_ERROR(CheckOutside(FileSystem::Posix(), options.workers.costs));
  }
  if (options.workers.count != 0 && options.device == ComputeOn::kCuda) {
    return Status::InvalidArgument(
        "`workers` and `device=cuda` exclude each other: one process uses the device");
  }
  if (options.workers.count != 0 && options.incremental) {
    return Status::InvalidArgument("`workers` and `incremental` exclude each other");
  }
  return Status::Ok();
}

/// Publishes the result as the options request, in the generation that is current at that time.
/// Returns the array's name as users write it: emb, or emb@3.
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
  RHIZOME_RETURN_IF_ERROR(PublishMade(
      options.store, {.made_for = store, .source = source, .wait_seconds = options.wait_seconds},
      control, steps));
  return name;
}

/// Passes the result to InferOptions::take, if set; otherwise publishes it. Returns the published
/// name, or an empty string if nothing was published.
Result<std::string> HandOver(const InferenceJob& job, const WrittenArray& made,
                             const JobControl& control) {
  const InferOptions& options = job.options();
  if (!options.take)
    return Publish(job.store(), options, {made.arrays, made.root, made.files}, control);
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChunkArray> array,
      ChunkArray::Open(job.store().fs(), made.root, made.arrays.front(), made.files));
  RHIZOME_RETURN_IF_ERROR(options.take({.graph = job.graph(),
                                        .array = *array,
                                        .task = job.task(),
                                        .class_names = job.class_names()}));
  return std::string();
}

/// Starts the child processes of the job, if it has any.
Result<std::unique_ptr<InferenceWorkers>> StartWorkers(const InferenceJob& job,
                                                       std::uint64_t base_bytes) {
  const InferOptions& options = job.options();
  if (options.workers.count == 0) return std::unique_ptr<InferenceWorkers>();
  // This process runs the input pass before workers get their first task.
  LayerwiseOptions first;
  first.inputs = job.inputs();
  first.threads = std::max<std::uint32_t>(options.resources.threads, 1);
  const std::uint64_t own_bytes = std::max(
      WorkerRanges::Bytes(job.graph()), LayerSizes(job.graph(), job.model(), first).InputBytes());
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, WorkerBytes(options, own_bytes, base_bytes));
  std::vector<std::string> command = options.workers.command;
  command.push_back(fmt::format("{}", bytes));
  WorkerRanges ranges(options.workers, options.note);
  return InferenceWorkers::Start(command, options.workers.count, std::move(ranges), options.note);
}

/// Reports a job whose array is already published, because an earlier run was killed after
/// publishing or the job was started twice. Removes the scratch files of that run.
InferReport PublishedBefore(const InferenceJob& job) {
  static_cast<void>(
      JobScratch::Open(job.store(), job.ScratchName(), JobScratch::Leftovers::kRemove));
  InferReport report;
  report.vertices = job.graph().vertex_count();
  report.array = *job.published();
  report.published_before = true;
  return report;
}

InferReport MakeReport(const LayerwiseResult& result, const InferenceJob& job,
                       const WorkClock& clock) {
  InferReport report;
  report.layers = result.layers;
  report.vertices = job.graph().vertex_count();
  report.seconds = clock.seconds();
  report.cpu_seconds = clock.cpu_seconds();
  report.vertices_per_second =
      static_cast<double>(report.vertices) / std::max(report.seconds, 1e-9);
  report.valid_accuracy = result.accuracy.Of(Split::kValid);
  report.test_accuracy = result.accuracy.Of(Split::kTest);
  report.resumed_chunks = result.resumed_chunks;
  report.kind = job.model().shape().spec.kind;
  if (!job.inputs().empty() && job.options().mode == InferMode::kLayerwise)
    report.inputs = result.inputs;
  report.list_reads = job.list_reads();
  report.direction = job.options().data.sampling.walked();
  report.edge_weights = job.edge_weights();
  if (job.device() != nullptr) report.device = job.device()->report();
  return report;
}

/// Finds the rows of the result that have NaN or infinite values, if a run wrote such rows, and
/// sends a note about them to the caller.
Result<std::vector<InferReport::NonFinite>> ReportAndNoteNonFinite(const InferenceJob& job,
                                                                   const LayerwiseResult& result,
                                                                   const JobControl& control) {
  std::vector<InferReport::NonFinite> found;
  if (result.non_finite_rows == 0) return found;
  const InferOptions& options = job.options();
  const std::vector<std::string> features = FeatureArrays(options.data.features, job.inputs());
  RHIZOME_ASSIGN_OR_RETURN(
      found, ReportNonFinite(job.graph(), options.out, result.output, job.layerwise(), control));
  if (!found.empty() && options.note)
    options.note(DescribeNonFinite(found, features, job.graph().live_vertex_count()));
  return found;
}

/// Adds the memory of all processes of the job to the report.
void AddMemory(const InferenceWorkers* workers, std::uint64_t base_bytes, InferReport& report) {
  report.base_memory_bytes = base_bytes;
  report.own_peak_memory_bytes = PeakResidentBytes();
  if (workers != nullptr) report.worker_peak_memory_bytes = workers->PeakBytes();
  report.peak_memory_bytes =
      std::accumulate(report.worker_peak_memory_bytes.begin(),
                      report.worker_peak_memory_bytes.end(), report.own_peak_memory_bytes);
}

/// Runs the job on `device`, or on the CPU if it is null. Sets `store` to the id of the store.
Result<InferReport> InferAndPublish(const InferOptions& given, const ComputeDevice* device,
                                    std::uint64_t base_bytes, const JobControl& control,
                                    StoreId& store) {
  const WorkClock clock;
  RHIZOME_ASSIGN_OR_RETURN(const auto job, InferenceJob::Open(given, InferRole::kMaker));
  const InferOptions& options = job->options();  // some follow from the model
  store = job->store().id();
  if (job->published()) {
    InferReport report = PublishedBefore(*job);
    AddMemory(nullptr, base_bytes, report);
    return report;
  }
  if (!options.take && !(options.wait_seconds > 0))
    RHIZOME_RETURN_IF_ERROR(ArrayChange::CheckNoWriter(job->store().fs(), options.store));
  std::vector<std::string> ignored;
  if (!job->model().shape().spec.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(
        ignored, IgnoredFacts(job->graph(), {.sampling = job->options().data.sampling,
                                             .edge_weights = job->edge_weights(),
                                             .vertex_types = !job->inputs().empty() ||
                                                             job->model().by_vertex_type(),
                                             .edge_types = job->model().typed()}));
  }
  ReportIgnored(ignored, options.note);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(job->store(), job->ScratchName(),
                                            options.resume ? JobScratch::Leftovers::kKeep
                                                           : JobScratch::Leftovers::kRemove));
  // Keep the finished chunks, so that a layerwise run can be resumed no matter why it stopped.
  if (options.mode == InferMode::kLayerwise && !options.take) scratch->Keep();
  RHIZOME_ASSIGN_OR_RETURN(const auto workers, StartWorkers(*job, base_bytes));
  if (device != nullptr) {
    RHIZOME_RETURN_IF_ERROR(job->UseDevice(*device));
  }
  RHIZOME_RETURN_IF_ERROR(job->Prepare(base_bytes, control));
  RHIZOME_ASSIGN_OR_RETURN(const IncrementalPlan incremental, job->FindBase());
  const IncrementalBase* const base = incremental.base ? &*incremental.base : nullptr;
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           job->Run(scratch->folder(), base, workers.get(), control));
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  RHIZOME_ASSIGN_OR_RETURN(std::vector<InferReport::NonFinite> non_finite,
                           ReportAndNoteNonFinite(*job, result, control));
  RHIZOME_ASSIGN_OR_RETURN(const std::string published, HandOver(*job, result.output, control));
  scratch->RemoveAtEnd();
  InferReport report = MakeReport(result, *job, clock);
  report.array = published;
  report.kept = base == nullptr ? 0 : report.vertices - base->stale.size();
  report.full_because = incremental.full_because;
  report.kept_across_compaction = report.kept > 0 && base->compacted;
  report.ignored = std::move(ignored);
  report.non_finite = std::move(non_finite);
  AddMemory(workers.get(), base_bytes, report);
  return report;
}

/// Runs the job. All paths in `options` are absolute.
Result<InferReport> InferWith(InferOptions options, const JobControl& control,
                              const ComputeDeviceFactory& open) {
  if (options.incremental) options.new_version = true;
  const std::uint64_t base_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckMode(options));
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  // Declared here so that the device is opened before libtorch is used, and closed after everything
  // that is stored on it.
  std::optional<ComputeDevice> device;
  if (options.device == ComputeOn::kCuda) {
    RHIZOME_ASSIGN_OR_RETURN(device, open());
  }
  SetTorchThreads(options.resources.threads);
  StoreId id;
  RHIZOME_ASSIGN_OR_RETURN(InferReport report, InferAndPublish(options, device ? &*device : nullptr,
                                                               base_bytes, control, id));
  // Dropped versions could not be removed while the job itself read the store.
  if (options.keep > 0)
    static_cast<void>(ArrayChange::RemoveDropped(FileSystem::Posix(), options.store, id));
  return report;
}

}  // namespace

Result<InferReport> InferArray(const InferOptions& given, const JobControl& control,
                               const ComputeDeviceFactory& open) {
  FileSystem& fs = FileSystem::Posix();
  return WithAbsolute(fs, given.store, [&](const Path& store) {
    InferOptions options = given;
    options.store = store;
    options.workers.costs = AbsolutePath(fs, given.workers.costs);
    return InferWith(std::move(options), control, open);
  });
}

}  // namespace internal
}  // namespace rhizome
