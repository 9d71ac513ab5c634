#include "rhizome/gnn/infer_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/memory_plan.h"
#include "rhizome/cache/process_memory.h"
#include "rhizome/storage/array_change.h"
#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/hash.h"

namespace rhizome {
namespace {

Status CheckOutput(const Store& store, const InferOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(options.out));
  if (store.manifest().FindArray(options.out) != nullptr && !options.new_version) {
    return Status::AlreadyExists(
        fmt::format("the store has an array {} already; choose another name for --out, or "
                    "--new-version",
                    options.out));
  }
  return Status::Ok();
}

/// Version of the files that a job leaves.
constexpr int kLogFormat = 4;

/// Returns how many edges far a change reaches; see ArrayOrigin.
std::uint32_t Hops(const ModelShape& shape) {
  return shape.spec.layers + (shape.spec.kind == ModelKind::kGcn ? 1 : 0);
}

/// Returns the facts about the array's origin that it carries as attributes.
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

/// Removes the version, which counts changes of arrays, from a snapshot such as "generation 1
/// version 2 sequence 3".
std::string WithoutVersion(std::string_view snapshot) {
  const std::size_t begin = snapshot.find(" version ");
  const std::size_t end = snapshot.find(" sequence ");
  if (begin == snapshot.npos || end == snapshot.npos || end < begin) return std::string(snapshot);
  return std::string(snapshot.substr(0, begin)) + std::string(snapshot.substr(end));
}

/// Returns the newest version of the array to be made, as users write it, if it is what this job
/// would make, of the same commit.
std::optional<std::string> FindPublished(const InferJob& job, const InferOptions& options) {
  const Manifest& manifest = job.store->manifest();
  const ArrayEntry* const there = NewestOf(manifest, options.out);
  if (there == nullptr) return std::nullopt;
  for (const auto& [name, value] : Attributes(job, options)) {
    const std::string_view found = FactOf(*there, name);
    if (name == "snapshot" ? WithoutVersion(found) != WithoutVersion(value) : found != value)
      return std::nullopt;
  }
  if (there->codec.kind != options.codec.kind || there->codec.level != options.codec.level)
    return std::nullopt;
  const auto version = SplitVersion(there->name);
  if (version.has_value() != (options.new_version || options.live || options.keep > 0))
    return std::nullopt;
  if (!version) return there->name;
  const std::string live = fmt::format("{}@{}", options.out, kLiveAlias);
  if (options.live && manifest.FindArray(live) != there) return std::nullopt;
  return fmt::format("{}@{}", options.out, version->second);
}

/// Shares of what --memory leaves, for the stage and for chunks that are read ahead, with their
/// limits; without --memory they take the defaults, which are also the largest sizes. A stage that
/// fits into the processor's cache is no slower than a larger one. kDefaultBlockBytes is what a
/// block takes without --memory.
constexpr std::uint64_t kStageShare = 16;
constexpr std::uint64_t kDefaultStageBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kLeastStageBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kAheadShare = 32;
constexpr std::uint64_t kDefaultAheadBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kLeastAheadBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kDefaultBlockBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kLeastCacheShare = 4;
constexpr std::uint64_t kSamplewiseBlockRows = 1024;

/// Maximum number of threads that encode and write, and the share of memory that all but the first
/// may take.
constexpr std::uint32_t kMostWriters = 4;
constexpr std::uint64_t kWriterShare = 6;

/// Returns the largest number of writers that take at most `bytes` more than one does.
std::uint32_t WritersWithin(std::uint64_t bytes, const InferJob& job,
                            const LayerwiseOptions& options) {
  const auto fits = [&](std::uint32_t writers) {
    for (std::uint32_t layer = 0; layer < job.model->shape().spec.layers; ++layer) {
      const ArrayEntry output = LayerEntry(*job.graph, *job.model, layer, options);
      if (LayerOutput::Bytes(output, writers) - LayerOutput::Bytes(output, 1) > bytes) return false;
    }
    return true;
  };
  std::uint32_t writers = options.writers;
  while (writers > 1 && !fits(writers)) --writers;
  return writers;
}

bool ListsAreRead(const InferJob& job, const InferOptions& options) {
  return options.topology == TopologyPlace::kDirect && !job.model->shape().spec.no_edges;
}

/// Returns the largest number below `limit` that fits, to a MiB, or 0; smaller numbers must fit
/// too.
template <typename Fits>
std::uint64_t MostThatFits(std::uint64_t limit, const Fits& fits) {
  std::uint64_t most = 0;
  while (limit - most > (std::uint64_t{1} << 20)) {
    const std::uint64_t middle = most + (limit - most) / 2;
    (fits(middle) ? most : limit) = middle;
  }
  return most;
}

// Divides the memory: (1) sets the sizes of stage, chunks ahead and writers by their shares; (2)
// finds the largest block that fits beside them and what the caller has fixed; (3) gives the rest
// to the cache (PlanMemory); (4) drops a cache that is too small to help.
Result<InferMemory> DivideMemory(const InferJob& job, const InferOptions& options,
                                 std::uint64_t base_bytes, LayerwiseOptions made) {
  const ArrayEntry& features = *job.store->manifest().FindArray(options.features);
  MemoryNeeds needs;
  const std::uint64_t now = ResidentBytes();
  needs.held_bytes = now > base_bytes ? now - base_bytes : 0;
  made.stage_bytes = kDefaultStageBytes;
  made.ahead_bytes = kDefaultAheadBytes;
  made.block_bytes = kDefaultBlockBytes;
  // A worker must report its chunks in order.
  made.writers =
      options.worker_of_bytes ? 1 : std::clamp<std::uint32_t>(made.threads, 1, kMostWriters);
  made.block_rows = options.block_rows;
  if (made.block_rows == 0 && options.mode == InferMode::kSamplewise) {
    made.block_rows = kSamplewiseBlockRows;
  }
  const bool lists_are_read = ListsAreRead(job, options);
  LayerwiseOptions complete = made;
  RHIZOME_ASSIGN_OR_RETURN(complete.output, MakeOutputEntry(*job.graph, *job.model, made));
  complete.cache_bytes = options.cache_bytes.value_or(0);
  const auto working = [&](const LayerwiseOptions& tried) {
    return kInferSlackBytes + WorkingBytes(*job.graph, *job.model, features, tried) +
           (lists_are_read ? ListsOnDisk::WorkingBytes(kSampledEdges) : 0);
  };
  if (options.memory_bytes != 0) {
    const std::uint64_t left =
        options.memory_bytes - std::min(options.memory_bytes, needs.held_bytes);
    complete.stage_bytes = std::clamp(left / kStageShare, kLeastStageBytes, kDefaultStageBytes);
    complete.ahead_bytes = std::clamp(left / kAheadShare, kLeastAheadBytes, kDefaultAheadBytes);
    complete.writers = WritersWithin(left / kWriterShare, job, complete);
    // All memory that is left is for sums, because a cache saves less reading.
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
  made.ahead_bytes = complete.ahead_bytes;
  made.block_bytes = complete.block_bytes;
  made.writers = complete.writers;
  if (lists_are_read) {
    const NeighborCache::Needs cache = NeighborCache::NeedsOf(*job.graph, Direction::kIn);
    needs.neighbor_full_bytes = cache.full_bytes;
    needs.neighbor_table_bytes = cache.table_bytes;
    needs.neighbor_build_bytes = cache.build_bytes;
  }
  // Every list is read only a few times, in order, so lists are not cached unless that is asked
  // for.
  RHIZOME_ASSIGN_OR_RETURN(
      const JobMemoryPlan plan,
      PlanMemory(options.memory_bytes,
                 {.cache_bytes = options.cache_bytes,
                  .superbatch = 1,
                  .neighbor_cache_bytes = options.neighbor_cache_bytes.value_or(0),
                  .in_turn = false},
                 needs));
  // Chunks that are ahead take frames of a cache while others wait in them.
  complete.cache_bytes = plan.cache_bytes;
  const std::uint64_t beside = working(complete) - needs.working_bytes;
  made.cache_bytes = plan.cache_bytes - std::min(plan.cache_bytes, beside);
  // In a sequential scan a cache saves only the reads of the part that it holds, so a small cache
  // is not worth planning for.
  if (!options.cache_bytes && made.cache_bytes < needs.cacheable_bytes / kLeastCacheShare)
    made.cache_bytes = 0;
  // The memory of counting is free again before blocks and cache are allocated.
  if (options.memory_bytes != 0) made.layout_bytes = plan.cache_bytes + made.block_bytes;
  return InferMemory{std::move(made), plan.neighbor_cache_bytes};
}

}  // namespace

Result<InferJob> OpenInferJob(const InferOptions& options, bool no_output) {
  InferJob job;
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(
      job.store, Store::Open(fs, options.store, Store::Mode::kRead, {.scratch = options.scratch}));
  const Status output = no_output ? Status::Ok() : CheckOutput(*job.store, options);
  // A run that is resumed may have published already.
  const bool may_be_there = options.resume && output.code() == StatusCode::kAlreadyExists;
  if (!may_be_there) RHIZOME_RETURN_IF_ERROR(output);
  auto model_file = LoadSafetensors(fs, options.model_file);
  if (!model_file) return Fail(OfNamedFile(model_file.error(), options.model_file));
  job.model_file = *std::move(model_file);
  Result<Model> model = Model::FromFile(job.model_file.file);
  if (!model)
    return Fail(
        OfNamedFile(model.error().WithContext(options.model_file.string()), options.model_file));
  job.model = *std::move(model);
  // A graph of a store that is open for reading is faster to query than one that may change.
  RHIZOME_ASSIGN_OR_RETURN(job.graph,
                           Graph::Open(std::as_const(*job.store), {.topology = options.topology}));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, job.store->OpenArray(options.features));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), *job.model, *job.graph));
  if (options.resume && !no_output) job.published = FindPublished(job, options);
  if (may_be_there && !job.published) return Fail(output);
  const Manifest& manifest = job.store->manifest();
  if (manifest.FindArray(options.labels) != nullptr &&
      manifest.FindArray(options.split) != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(job.labels, ReadLabels(*job.graph, options.labels, options.split));
  }
  return job;
}

std::string InferScratchName(const InferOptions& options) { return "infer-" + options.out; }

std::string DescribeInferJob(const InferJob& job, const InferOptions& options,
                             const IncrementalBase* base) {
  const Manifest& manifest = job.store->manifest();
  nlohmann::json files = nlohmann::json::array();
  const ArrayEntry* features = manifest.FindArray(options.features);  // may be a version
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

Result<InferMemory> MakeLayerwiseOptions(const InferJob& job, const InferOptions& options,
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
  // Under a memory limit the page cache would count.
  made.direct = options.memory_bytes != 0;
  return DivideMemory(job, options, base_bytes, std::move(made));
}

Result<std::unique_ptr<ListsOnDisk>> OpenInferLists(const InferJob& job,
                                                    const InferOptions& options,
                                                    InferMemory& memory,
                                                    const JobControl& control) {
  if (!ListsAreRead(job, options)) return std::unique_ptr<ListsOnDisk>();
  RHIZOME_ASSIGN_OR_RETURN(auto lists, ListsOnDisk::Open(*job.graph, memory.neighbor_cache_bytes,
                                                         {}, options.io, control));
  memory.options.neighbors = lists->source();
  return lists;
}

}  // namespace rhizome
