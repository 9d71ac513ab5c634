#include "rhizome/gnn/infer.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "rhizome/cache/pass_plan.h"
#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/chunk_reader.h"
#include "rhizome/gnn/compute_threads.h"
#include "rhizome/gnn/job_scratch.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/memory_plan.h"
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
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(*job.store));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), *job.model, *job.graph));
  const Manifest& manifest = job.store->manifest();
  if (manifest.FindArray(options.labels) != nullptr &&
      manifest.FindArray(options.split) != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
  }
  return job;
}

/// All that the result's bytes depend on; a killed run is continued only where it is equal.
std::string Describe(const InferJob& job, const InferOptions& options) {
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
      {"generation", manifest.generation},
      {"sequence", job.graph->sequence()},
      {"features", options.features},
      {"features_xxh3", ToHex(Xxh3(std::as_bytes(std::span(all))))},
      {"model_xxh3", ToHex(job.model_file.hash)},
      {"fanouts", options.fanouts},
      {"chunk_rows", options.chunk_rows},
      {"seed", options.seed},
      {"scores", options.scores},
      {"labels", job.labels ? options.labels + "/" + options.split : ""},
      {"codec", std::string(CodecName(options.codec.kind))},
      {"level", options.codec.level}};
  return description.dump();
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
      {"fanout", fanout},
      {"seed", fmt::format("{}", options.seed)},
      {"snapshot", fmt::format("generation {} version {} sequence {}", manifest.generation,
                               manifest.version, job.graph->sequence())}};
}

/// The memory of the widest layer, as PlanMemory wants it.
MemoryNeeds LayerwiseNeeds(const InferJob& job, const ArrayEntry& features,
                           const ArrayEntry& output, const InferOptions& options) {
  const ModelShape& shape = job.model->shape();
  const std::uint64_t width = static_cast<std::uint64_t>(std::max(shape.inputs, shape.spec.hidden));
  const std::uint64_t chunk = ChunkReader::DecodedBytes(features);
  const std::uint64_t degree =
      job.graph->edge_count() / std::max<std::uint64_t>(job.graph->vertex_count(), 1) + 1;
  MemoryNeeds needs;
  needs.working_bytes = kSlackBytes + (ChunkReader::kReadAhead + 3) * chunk +
                        options.block_rows * (width * 4 * sizeof(float) + degree * 64) +
                        3 * output.chunk_rows * output.row_bytes();
  needs.cacheable_bytes = features.chunk_count() * chunk;
  return needs;
}

Result<LayerwiseOptions> MakeOptions(const InferJob& job, const InferOptions& options,
                                     std::uint64_t base_bytes) {
  LayerwiseOptions made;
  made.features = options.features;
  made.fanouts = options.fanouts;
  made.output.name = options.out;
  made.output.codec = options.codec;
  made.output.attributes = Attributes(job, options);
  made.output.array_id = NewArrayId(job.store->id(), job.store->manifest(), "infer " + options.out);
  made.scores = options.scores;
  made.policy = options.cache;
  made.block_rows = std::max<std::uint64_t>(options.block_rows, 1);
  made.chunk_rows = options.chunk_rows;
  made.seed = options.seed;
  made.threads = std::max<std::uint32_t>(options.threads, 1);
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry output, MakeOutputEntry(*job.graph, *job.model, made));
  MemoryNeeds needs =
      LayerwiseNeeds(job, *job.store->manifest().FindArray(options.features), output, options);
  const std::uint64_t now = ResidentBytes();
  needs.held_bytes = now > base_bytes ? now - base_bytes : 0;
  RHIZOME_ASSIGN_OR_RETURN(
      const MemoryPlan plan,
      PlanMemory(options.memory_bytes, {.cache_bytes = options.cache_bytes, .superbatch = 1},
                 needs));
  made.cache_bytes = plan.cache_bytes;
  return made;
}

Result<LayerwiseResult> RunJob(const InferJob& job, const InferOptions& options,
                               const LayerwiseOptions& made, const JobScratch& scratch,
                               const JobControl& control) {
  const Labels* labels = job.labels ? &*job.labels : nullptr;
  if (options.mode == InferMode::kSamplewise) {
    return RunSamplewise(*job.graph, *job.model, labels, scratch.folder(), made, control);
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<InferenceLog> log,
      InferenceLog::Open(job.store->fs(), scratch.folder() / "LOG", Describe(job, options)));
  return RunLayerwise(*job.graph, *job.model, labels, scratch.folder(), log.get(), made, control);
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

/// What one layer reads; it writes chunks of `output_chunk_rows`.
Result<InferPlanLayer> PlanLayer(const Graph& graph, const Model& model,
                                 const LayerwiseOptions& options, std::uint32_t layer,
                                 const ArrayEntry& source, const JobControl& control) {
  const std::uint32_t layers = model.shape().spec.layers;
  const std::uint64_t cache_chunks = options.cache_bytes / ChunkReader::DecodedBytes(source);
  const PassPlanOptions pass{
      .draw = {.fanout =
                   options.fanouts.empty() ? kAllNeighbors : options.fanouts[layers - 1 - layer],
               .no_edges = model.shape().spec.no_edges,
               .seed = options.seed,
               .layer = layer,
               .threads = options.threads},
      .shape = {.block_rows = RoundUpToTiles(options.block_rows), .chunk_rows = source.chunk_rows},
      .output_chunk_rows = LayerEntry(graph, model, layer, options).chunk_rows,
      .cache_chunks = cache_chunks,
      .cache = options.policy};
  RHIZOME_ASSIGN_OR_RETURN(const PassPlan plan, PlanPass(graph, pass, control));
  InferPlanLayer planned;
  planned.source = source.name;
  planned.chunk_rows = source.chunk_rows;
  planned.chunks = plan.chunks;
  planned.cache_chunks = std::min(cache_chunks, plan.chunks);
  planned.chunk_requests = plan.requests;
  planned.chunk_reads = plan.reads;
  planned.worker_chunks = plan.worker_chunks;
  planned.chosen_requests = plan.chosen_requests;
  planned.chosen_reads = plan.chosen_reads;
  for (const LayoutCost& cost : plan.layouts) {
    planned.layouts.push_back({LayoutName(cost.rule), cost.requests, cost.reads});
  }
  for (const LayoutRule& rule : plan.chosen) planned.chosen_layouts.push_back(LayoutName(rule));
  return planned;
}

}  // namespace

Result<InferPlan> PlanInference(const InferOptions& options, const JobControl& control) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t base_bytes = ResidentBytes();
  RHIZOME_ASSIGN_OR_RETURN(const InferJob job, OpenJob(options, /*no_output=*/true));
  RHIZOME_ASSIGN_OR_RETURN(LayerwiseOptions made, MakeOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(made.output, MakeOutputEntry(*job.graph, *job.model, made));
  InferPlan plan{.layers = {},
                 .vertices = job.graph->vertex_count(),
                 .workers = job.graph->partition_count(),
                 .cache_bytes = made.cache_bytes,
                 .seconds = 0};
  ArrayEntry source = *job.store->manifest().FindArray(options.features);
  for (std::uint32_t layer = 0; layer < job.model->shape().spec.layers; ++layer) {
    RHIZOME_ASSIGN_OR_RETURN(InferPlanLayer planned,
                             PlanLayer(*job.graph, *job.model, made, layer, source, control));
    plan.layers.push_back(std::move(planned));
    source = LayerEntry(*job.graph, *job.model, layer, made);
  }
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

Result<InferReport> InferArray(const InferOptions& options, const JobControl& control) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t base_bytes = ResidentBytes();
  if (options.resume && options.mode == InferMode::kSamplewise) {
    return Fail(Status::InvalidArgument("--resume works in layerwise mode only"));
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
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseOptions made, MakeOptions(job, options, base_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseResult result,
                           RunJob(job, options, made, *scratch, control));
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
  return report;
}

}  // namespace rhizome
