#include "rhizome/gnn/infer.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "rhizome/cache/pass_plan.h"
#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/chunk_reader.h"
#include "rhizome/gnn/compute_threads.h"
#include "rhizome/gnn/incremental.h"
#include "rhizome/gnn/job_scratch.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/lists_on_disk.h"
#include "rhizome/gnn/memory_plan.h"
#include "rhizome/gnn/pass_order.h"
#include "rhizome/gnn/process_memory.h"
#include "rhizome/gnn/samplewise_inference.h"
#include "rhizome/gnn/simd.h"
#include "rhizome/index/publish_array.h"
#include "rhizome/storage/array_change.h"

namespace rhizome {
namespace {

/// Memory for what libtorch and the allocator take when they first work.
constexpr std::uint64_t kSlackBytes = std::uint64_t{48} << 20;

struct InferJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
  LoadedTensorFile model_file;
  std::optional<Model> model;
  std::optional<Labels> labels;
};

Status CheckOutput(const Store& store, const InferOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", options.out));
  if (SplitVersion(options.out)) {
    return Status::InvalidArgument(fmt::format(
        "{} names a version: versions are numbered by the store, name the array", options.out));
  }
  if (store.manifest().FindArray(options.out) != nullptr && !options.new_version) {
    return Status::AlreadyExists(
        fmt::format("the store has an array {} already; choose another name for --out, or "
                    "--new-version",
                    options.out));
  }
  return Status::Ok();
}

/// Publishes the result as the options say, in the generation that is current by now. Returns the
/// array as users write it: emb, or emb@3.
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

/// With no_output the store may have an array of the name already.
Result<InferJob> OpenJob(const InferOptions& options, bool no_output = false) {
  InferJob job;
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(job.store, Store::Open(fs, options.store, Store::Mode::kRead));
  if (!no_output) RHIZOME_RETURN_IF_ERROR(CheckOutput(*job.store, options));
  RHIZOME_ASSIGN_OR_RETURN(job.model_file, LoadSafetensors(fs, options.model_file));
  Result<Model> model = Model::FromFile(job.model_file.file);
  if (!model) return Fail(model.error().WithContext(options.model_file.string()));
  job.model = *std::move(model);
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(*job.store, {.topology = options.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), *job.model, *job.graph));
  const Manifest& manifest = job.store->manifest();
  if (manifest.FindArray(options.labels) != nullptr &&
      manifest.FindArray(options.split) != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
  }
  return job;
}

/// Of the files that a job leaves.
constexpr int kLogFormat = 2;

/// All that the result's bytes depend on; a killed run is continued only where it is equal.
/// `base`: of an incremental run.
std::string Describe(const InferJob& job, const InferOptions& options,
                     const IncrementalBase* base) {
  const Manifest& manifest = job.store->manifest();
  nlohmann::json files = nlohmann::json::array();
  const ArrayEntry* features = manifest.FindArray(options.features);  // perhaps of a version
  const std::string folder = ArrayFolder(features->name) + "/";
  for (const FileEntry& file : manifest.files) {
    if (file.path.starts_with(folder)) files.push_back(ToHex(file.xxh3));
  }
  const std::string all = files.dump();
  const nlohmann::json description = {
      {"job", "infer"},
      {"format", kLogFormat},
      {"generation", manifest.generation},
      {"sequence", job.graph->sequence()},
      {"features", options.features},
      {"features_xxh3", ToHex(Xxh3(std::as_bytes(std::span(all))))},
      {"model_xxh3", ToHex(job.model_file.hash)},
      {"fanouts", options.fanouts},
      {"chunk_rows", options.chunk_rows},
      {"inner_rows", options.inner_rows},
      {"seed", options.seed},
      {"scores", options.scores},
      {"base", base == nullptr ? "" : base->name},
      {"base_id", base == nullptr ? 0 : base->array->entry().array_id},
      {"labels", job.labels ? options.labels + "/" + options.split : ""},
      {"codec", std::string(CodecName(options.codec.kind))},
      {"level", options.codec.level}};
  return description.dump();
}

/// How far a change reaches; see ArrayOrigin.
std::uint32_t Hops(const ModelShape& shape) {
  return shape.spec.layers + (shape.spec.kind == ModelKind::kGcn ? 1 : 0);
}

/// What a reader of the array may want to know about where it came from.
std::vector<std::pair<std::string, std::string>> Attributes(const InferJob& job,
                                                            const InferOptions& options) {
  std::string fanout = "all";
  for (std::size_t i = 0; i < options.fanouts.size(); ++i) {
    const std::string one =
        options.fanouts[i] == kAllNeighbors ? "all" : fmt::format("{}", options.fanouts[i]);
    fanout = i == 0 ? one : fanout + "," + one;
  }
  const Manifest& manifest = job.store->manifest();
  return {
      {"made_by", options.mode == InferMode::kLayerwise ? "infer layerwise" : "infer samplewise"},
      {"content", options.scores ? "class scores" : "embeddings"},
      {"model_xxh3", ToHex(job.model_file.hash)},
      {"features", options.features},
      {"features_id", fmt::format("{}", manifest.FindArray(options.features)->array_id)},
      {kVerticesFact, fmt::format("{}", job.graph->vertex_count())},
      {"hops", fmt::format("{}", Hops(job.model->shape()))},
      {"fanout", fanout},
      {"seed", fmt::format("{}", options.seed)},
      {"snapshot", fmt::format("generation {} version {} sequence {}", manifest.generation,
                               manifest.version, job.graph->sequence())}};
}

/// Of what --memory leaves, the share of the stage; and what it and a block take without a limit.
constexpr std::uint64_t kStageShare = 8;
constexpr std::uint64_t kDefaultStageBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastStageBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kDefaultBlockBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kSamplewiseBlockRows = 1024;

bool ListsAreRead(const InferJob& job, const InferOptions& options) {
  return options.topology == TopologyPlace::kDirect && !job.model->shape().spec.no_edges;
}

/// How the job uses memory; the sizes of stage, blocks and caches do not change results.
struct InferMemory {
  LayerwiseOptions options;
  std::uint64_t neighbor_cache_bytes = 0;
};

/// The most below `limit` that fits, to a MiB, if less always does; or 0.
template <typename Fits>
std::uint64_t MostThatFits(std::uint64_t limit, const Fits& fits) {
  std::uint64_t most = 0;
  while (limit - most > (std::uint64_t{1} << 20)) {
    const std::uint64_t middle = most + (limit - most) / 2;
    (fits(middle) ? most : limit) = middle;
  }
  return most;
}

Result<InferMemory> DivideMemory(const InferJob& job, const InferOptions& options,
                                 std::uint64_t base_bytes, LayerwiseOptions made) {
  const ArrayEntry& features = *job.store->manifest().FindArray(options.features);
  MemoryNeeds needs;
  const std::uint64_t now = ResidentBytes();
  needs.held_bytes = now > base_bytes ? now - base_bytes : 0;
  made.stage_bytes = kDefaultStageBytes;
  made.block_bytes = kDefaultBlockBytes;
  made.block_rows = options.block_rows;
  if (made.block_rows == 0 && options.mode == InferMode::kSamplewise) {
    made.block_rows = kSamplewiseBlockRows;
  }
  const bool lists_are_read = ListsAreRead(job, options);
  LayerwiseOptions complete = made;
  RHIZOME_ASSIGN_OR_RETURN(complete.output, MakeOutputEntry(*job.graph, *job.model, made));
  const auto working = [&](const LayerwiseOptions& tried) {
    return kSlackBytes + WorkingBytes(*job.graph, *job.model, features, tried) +
           (lists_are_read ? ListsOnDisk::WorkingBytes(kSampledEdges) : 0);
  };
  if (options.memory_bytes != 0) {
    const std::uint64_t left =
        options.memory_bytes - std::min(options.memory_bytes, needs.held_bytes);
    complete.stage_bytes = std::clamp(left / kStageShare, kLeastStageBytes, kDefaultStageBytes);
    // All but what is needed anyway is for sums: a cache saves less reading.
    const std::uint64_t fixed =
        options.cache_bytes.value_or(0) + options.neighbor_cache_bytes.value_or(0);
    complete.block_bytes = MostThatFits(left, [&](std::uint64_t bytes) {
      complete.block_bytes = bytes;
      return working(complete) + fixed <= left;
    });
  }
  needs.working_bytes = working(complete);
  needs.cacheable_bytes = CacheableBytes(*job.graph, *job.model, features, complete);
  made.stage_bytes = complete.stage_bytes;
  made.block_bytes = complete.block_bytes;
  if (lists_are_read) {
    const NeighborCache::Needs cache = NeighborCache::NeedsOf(*job.graph, Direction::kIn);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
  }
  // In order every list is read a few times in all: no cache of them unless it is asked for.
  RHIZOME_ASSIGN_OR_RETURN(
      const MemoryPlan plan,
      PlanMemory(options.memory_bytes,
                 {.cache_bytes = options.cache_bytes,
                  .superbatch = 1,
                  .neighbor_cache_bytes = options.neighbor_cache_bytes.value_or(0),
                  .in_turn = false},
                 needs));
  made.cache_bytes = plan.cache_bytes;
  // What counting takes is free again before blocks and cache are there.
  if (options.memory_bytes != 0) made.layout_bytes = plan.cache_bytes + made.block_bytes;
  return InferMemory{std::move(made), plan.neighbor_cache_bytes};
}

Result<InferMemory> MakeOptions(const InferJob& job, const InferOptions& options,
                                std::uint64_t base_bytes) {
  LayerwiseOptions made;
  made.features = options.features;
  made.fanouts = options.fanouts;
  made.output.name = options.out;
  made.output.codec = options.codec;
  made.output.inner_rows = options.inner_rows;
  made.output.attributes = Attributes(job, options);
  made.output.array_id = NewArrayId(job.store->id(), job.store->manifest(), "infer " + options.out);
  made.scores = options.scores;
  made.layout = options.layout;
  made.policy = options.cache;
  made.cached_first = options.cached_first;
  made.chunk_rows = options.chunk_rows;
  made.seed = options.seed;
  made.threads = std::max<std::uint32_t>(options.threads, 1);
  return DivideMemory(job, options, base_bytes, std::move(made));
}

/// Lists on disk, where they are; else null.
Result<std::unique_ptr<ListsOnDisk>> OpenLists(const InferJob& job, const InferOptions& options,
                                               InferMemory& memory, const JobControl& control) {
  if (!ListsAreRead(job, options)) return std::unique_ptr<ListsOnDisk>();
  RHIZOME_ASSIGN_OR_RETURN(auto lists, ListsOnDisk::Open(*job.graph, memory.neighbor_cache_bytes,
                                                         {}, options.io, control));
  memory.options.neighbors = lists->source();
  return lists;
}

/// Computes what may have changed, in layers of those vertices alone, and writes it and the rest.
Result<LayerwiseResult> RunIncremental(const InferJob& job, const LayerwiseOptions& options,
                                       const IncrementalBase& base, const Path& scratch,
                                       InferenceLog* log, const JobControl& control) {
  const Labels* labels = job.labels ? &*job.labels : nullptr;
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
  const Labels* labels = job.labels ? &*job.labels : nullptr;
  if (options.mode == InferMode::kSamplewise) {
    return RunSamplewise(*job.graph, *job.model, labels, scratch.folder(), made, control);
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<InferenceLog> log,
      InferenceLog::Open(job.store->fs(), scratch.folder() / "LOG", Describe(job, options, base)));
  if (base != nullptr) {
    return RunIncremental(job, made, *base, scratch.folder(), log.get(), control);
  }
  return RunLayerwise(*job.graph, *job.model, labels, scratch.folder(), log.get(), made, control);
}

/// What an incremental run begins with, if it is one and can be.
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
  if (result.accuracy.Has(Split::kValid)) {
    report.valid_accuracy = result.accuracy.Share(Split::kValid);
  }
  if (result.accuracy.Has(Split::kTest)) {
    report.test_accuracy = result.accuracy.Share(Split::kTest);
  }
  report.resumed_chunks = result.resumed_chunks;
  report.peak_memory_bytes = PeakResidentBytes();
  report.array = options.out;
  return report;
}

/// Of a worker that holds no sums.
constexpr std::uint64_t kWorkerBlockRows = 1024;

/// Adds what workers with disk caches of their own would read of a layer.
Status PlanWorkers(const Graph& graph, const Model& model, const LayerwiseOptions& options,
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
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t base_bytes = ResidentBytes();
  SetComputeThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(const InferJob job, OpenJob(options, /*no_output=*/true));
  RHIZOME_ASSIGN_OR_RETURN(InferMemory memory, MakeOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, memory, control));
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
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

Result<InferReport> InferArray(const InferOptions& given, const JobControl& control) {
  InferOptions options = given;
  if (options.incremental) options.new_version = true;
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t base_bytes = ResidentBytes();
  if (options.resume && options.mode == InferMode::kSamplewise) {
    return Fail(Status::InvalidArgument("--resume works in layerwise mode only"));
  }
  if (options.incremental && options.mode == InferMode::kSamplewise) {
    return Fail(Status::InvalidArgument("--incremental works in layerwise mode only"));
  }
  if (options.topology == TopologyPlace::kDirect && options.mode == InferMode::kSamplewise) {
    return Fail(Status::InvalidArgument("--topology direct works in layerwise mode only"));
  }
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  SetComputeThreads(options.threads);
  RHIZOME_ASSIGN_OR_RETURN(const InferJob job, OpenJob(options));
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(job.store->fs(), options.store, "infer-" + options.out,
                                            options.resume ? JobScratch::Leftovers::kKeep
                                                           : JobScratch::Leftovers::kRemove));
  // Whatever stops a layerwise run, what it finished can be resumed.
  if (options.mode == InferMode::kLayerwise) scratch->Keep();
  RHIZOME_ASSIGN_OR_RETURN(InferMemory memory, MakeOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const auto lists, OpenLists(job, options, memory, control));
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
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  InferReport report = MakeReport(result, job, options, seconds);
  report.array = published;
  report.kept = base == nullptr ? 0 : report.vertices - base->stale.size();
  report.full_because = incremental.full_because;
  report.base_memory_bytes = base_bytes;
  if (lists != nullptr) report.list_reads = lists->report();
  return report;
}

}  // namespace rhizome
