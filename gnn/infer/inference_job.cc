#include "gnn/infer/inference_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/feed/class_names.h"
#include "cache/feed/feed_fields.h"
#include "cache/feed/inputs.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/feed/task_labels.h"
#include "cache/job/job_description.h"
#include "cache/job/job_scratch.h"
#include "gnn/infer/inference_memory.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/infer/samplewise_run.h"
#include "gnn/models/recorded_direction.h"
#include "index/delta/stale_vertices.h"
#include "rhizome/array_change.h"
#include "rhizome/text_values.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
// InferenceJob::Open (1) opens the store and checks the name of the output; (2) loads the model;
// (3) opens the graph and checks that the features fit; (4) resolves the sampling options; (5)
// looks for an array that an earlier run has published; (6) reads the labels. Prepare completes the
// layerwise options and divides the memory. Run opens the job's log and computes all rows, or the
// rows that may have changed.

namespace {

Status CheckOutput(const Manifest& latest, const InferOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(options.out));
  if (latest.FindArray(options.out) != nullptr && !options.new_version) {
    return Status::AlreadyExists(fmt::format(
        "the store already has an array {}; choose another name for `out`, or set `new_version`",
        options.out));
  }
  return Status::Ok();
}

/// Version of the files that a job leaves.
constexpr int kLogFormat = 4;

/// Removes the version, which counts changes of arrays, from a snapshot such as "generation 1
/// version 2 sequence 3".
std::string WithoutVersion(std::string_view snapshot) {
  const std::size_t begin = snapshot.find(" version ");
  const std::size_t end = snapshot.find(" sequence ");
  if (begin == snapshot.npos || end == snapshot.npos || end < begin) return std::string(snapshot);
  return std::string(snapshot.substr(0, begin)) + std::string(snapshot.substr(end));
}

bool ListsAreRead(const InferOptions& options, const Model& model) {
  return options.data.topology == TopologyPlace::kDirect && !model.shape().spec.no_edges;
}

}  // namespace

Result<std::unique_ptr<InferenceJob>> InferenceJob::Open(const InferOptions& options,
                                                         InferRole role) {
  std::unique_ptr<InferenceJob> job(new InferenceJob(options, role));
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_ASSIGN_OR_RETURN(job->store_,
                           Store::Open(fs, options.store, Store::Mode::kRead,
                                       {.scratch = options.scratch, .at = options.at}));
  if (options.at) {
    RHIZOME_ASSIGN_OR_RETURN(const auto now,
                             Store::Open(fs, options.store, Store::Mode::kRead, {}));
    job->latest_ = now->manifest();
  }
  const bool makes = role == InferRole::kMaker && !options.take;
  const Status output = makes ? CheckOutput(job->latest(), options) : Status::Ok();
  // A resumed run may have published its array already.
  const bool may_be_there = options.resume && output.code() == StatusCode::kAlreadyExists;
  if (!may_be_there) RHIZOME_RETURN_IF_ERROR(output);
  auto model_file = LoadSafetensors(fs, options.model_file);
  if (!model_file) return Fail(OfNamedFile(model_file.error(), options.model_file));
  job->model_file_ = *std::move(model_file);
  Result<Model> model = Model::FromFile(job->model_file_.file);
  if (!model)
    return Fail(
        OfNamedFile(model.error().WithContext(options.model_file.string()), options.model_file));
  job->model_ = *std::move(model);
  RHIZOME_RETURN_IF_ERROR(job->ResolveTyped());
  // A graph of a store that is open for reading is faster to query than one that may change.
  RHIZOME_ASSIGN_OR_RETURN(
      job->graph_, Graph::Open(std::as_const(*job->store_), {.topology = options.data.topology}));
  if (job->graph_->live_vertex_count() == 0)
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' has no vertices to compute rows for; put some first", options.store.string())));
  RHIZOME_RETURN_IF_ERROR(job->ResolveFeatures());
  RHIZOME_RETURN_IF_ERROR(job->ResolveDraws());
  job->model_->FitSampling(job->sampling_);
  RHIZOME_RETURN_IF_ERROR(job->model_->FitRelations(job->graph_->edge_types(),
                                                    WalksTwoSides(*job->graph_, job->sampling_),
                                                    job->sampling_.sampler.typed_fanouts));
  if (options.resume && makes) job->published_ = job->FindPublished();
  if (may_be_there && !job->published_) return Fail(output);
  const Manifest& manifest = job->store_->manifest();
  const ArrayEntry* const labels = manifest.FindArray(options.data.labels);
  // Accuracy is computed for class labels only, and for models that score every class.
  const bool of_classes = job->task() == Task::kMulticlass;
  RHIZOME_ASSIGN_OR_RETURN(const SplitReference split, ParseSplitReference(options.data.split));
  const bool measures = of_classes && labels != nullptr && HoldsClasses(*labels) && !options.take &&
                        manifest.FindArray(split.array) != nullptr;
  RHIZOME_ASSIGN_OR_RETURN(const bool same, job->HasClassesOfStore(measures));
  if (measures && same) {
    RHIZOME_ASSIGN_OR_RETURN(job->labels_,
                             ReadLabels(*job->graph_, options.data.labels, options.data.split));
  }
  return job;
}

Task InferenceJob::task() const {
  const auto& metadata = model_file_.file.metadata;
  const auto found = metadata.find(kTaskMetadataKey);
  return found == metadata.end() ? Task::kMulticlass
                                 : ParseTask(found->second).value_or(Task::kMulticlass);
}

/// Returns whether the classes of the model have the numbers of the store's classes, as far as both
/// have names. If not, adds a note that the accuracy is not measured, if it `measures`.
Result<bool> InferenceJob::HasClassesOfStore(bool measures) const {
  const std::vector<std::string> ours = class_names();
  if (!measures || ours.empty()) return true;
  RHIZOME_ASSIGN_OR_RETURN(const auto theirs, ReadClassNames(*graph_, options_.data.labels));
  if (theirs.empty() || theirs == ours) return true;
  if (role_ == InferRole::kMaker && options_.note)
    options_.note(
        fmt::format("the classes of the model and of the array '{}' have different names, so the "
                    "accuracy is not "
                    "measured",
                    options_.data.labels));
  return false;
}

std::vector<std::string> InferenceJob::class_names() const {
  return ClassNamesOf(model_file_.file);
}

/// Finds the arrays that the model reads, and checks that they and the types of the graph fit the
/// model.
Status InferenceJob::ResolveFeatures() {
  RHIZOME_RETURN_IF_ERROR(model_->SetTypes(graph_->vertex_types()));
  RHIZOME_ASSIGN_OR_RETURN(inputs_, InputsOfModel(*graph_, *model_, options_.data.inputs));
  if (!inputs_.empty()) {
    if (options_.device != ComputeOn::kCuda) return Status::Ok();
    return Status::Unsupported(
        "the model has an array for each vertex type, which `device=cuda` does not support yet; "
        "infer without it");
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto features, store_->OpenArray(options_.data.features));
  RHIZOME_RETURN_IF_ERROR(CheckSharedInput(*graph_, options_.data.features));
  return CheckFeatures(features->entry(), *model_, *graph_);
}

/// Sets the direction in which the model was trained, unless the options have one; a difference is
/// noted. Files without a direction are of models that were trained on in-edges, or from before
/// files had it: then the direction that the kind walks by default. Errors: kInvalidArgument, a
/// typed kind on a device.
Status InferenceJob::ResolveTyped() {
  const std::optional<Direction> trained = DirectionOf(model_file_.file);
  std::optional<Direction>& direction = options_.data.sampling.direction;
  if (direction && trained && *direction != *trained && role_ == InferRole::kMaker && options_.note)
    options_.note(
        fmt::format("the model was trained with `direction={}`, which `direction={}` "
                    "replaces",
                    NameOfChoice(*trained), NameOfChoice(*direction)));
  if (!direction)
    direction = trained.value_or(model_->typed() && model_->shape().by_side ? Direction::kBoth
                                                                            : Direction::kIn);
  if (!model_->typed()) return Status::Ok();
  const std::string& kind = model_->shape().spec.kind;
  if (options_.device == ComputeOn::kCuda) {
    return Status::InvalidArgument(
        fmt::format("model {} has weights for each edge type, which `device=cuda` does not "
                    "support; infer on the CPU",
                    kind));
  }
  return Status::Ok();
}

/// Resolves the sampling options against the graph.
Status InferenceJob::ResolveDraws() {
  const ModelSpec& spec = model_->shape().spec;
  if (spec.no_edges) return Status::Ok();
  std::vector<std::int64_t> fanouts = options_.fanouts;
  if (!fanouts.empty() && !options_.data.sampling.typed_fanouts.empty()) {
    return Status::InvalidArgument(
        "`typed_fanouts` and `fanouts` exclude each other; give one of them");
  }
  if (fanouts.empty()) fanouts.assign(spec.layers, kAllNeighbors);
  const std::size_t hops = HopsOf(options_.data.sampling);
  if (hops != 0 && hops != spec.layers) {
    return Status::InvalidArgument(
        fmt::format("edge types are given for {} hops, but the model has {} layers; give one hop "
                    "for each layer",
                    hops, spec.layers));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      sampling_,
      ResolveSampling(options_.data.sampling, options_.data.edge_weights, fanouts, *graph_));
  return options_.mode == InferMode::kLayerwise ? CheckLayerwise(sampling_) : Status::Ok();
}

/// Returns the facts about the array's origin that are stored as its attributes.
std::vector<std::pair<std::string, std::string>> InferenceJob::Attributes() const {
  std::string fanout = "all";
  for (std::size_t i = 0; i < options_.fanouts.size(); ++i) {
    const std::string one =
        options_.fanouts[i] == kAllNeighbors ? "all" : fmt::format("{}", options_.fanouts[i]);
    fanout = i == 0 ? one : fanout + "," + one;
  }
  const Manifest& manifest = store_->manifest();
  std::vector<std::uint64_t> ids;
  for (const ArrayEntry& array : EntriesOf(*store_, options_.data.features, inputs_))
    ids.push_back(array.array_id);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"made_by", options_.mode == InferMode::kLayerwise ? "infer layerwise" : "infer samplewise"},
      {"content", options_.scores ? "class scores" : "embeddings"},
      {"model_xxh3", ToHex(model_file_.hash)},
      {"features",
       fmt::format("{}", fmt::join(FeatureArrays(options_.data.features, inputs_), ","))},
      {"features_id", fmt::format("{}", fmt::join(ids, ","))},
      {kVerticesFact, fmt::format("{}", graph_->vertex_count())},
      {"hops", fmt::format("{}", model_->hops())},
      {"fanout", fanout},
      {"seed", fmt::format("{}", options_.seed)},
      {"snapshot", fmt::format("generation {} version {} sequence {}", manifest.generation,
                               manifest.version, graph_->sequence())}};
  const Direction direction = options_.data.sampling.walked();
  if (direction != Direction::kIn && !graph_->info().symmetric)
    facts.emplace_back(kDirectionAttribute, direction == Direction::kOut ? "out" : "both");
  if (std::string draws = DescribeDraws(options_.data.sampling, sampling_.edge_weights);
      !draws.empty())
    facts.emplace_back(kSamplingFact, std::move(draws));
  if (const std::string inputs = DescribeInputs(inputs_); !inputs.empty())
    facts.emplace_back(kInputsFact, inputs.size() <= kMaxAttributeBytes
                                        ? inputs
                                        : ToHex(Xxh3(std::as_bytes(std::span(inputs)))));
  if (const HistoryState history = graph_->history(); history.known())
    facts.emplace_back(kCommitsAttribute, ToHex(history.commits));
  return facts;
}

/// Returns the hashes that identify the state that the job reads.
StateId InferenceJob::State() const {
  std::vector<std::string> arrays = FeatureArrays(options_.data.features, inputs_);
  if (labels_) {
    arrays.push_back(options_.data.labels);
    arrays.push_back(ParseSplitReference(options_.data.split)->array);
  }
  return graph_->StateWith(arrays);
}

/// Returns the newest version of the output array, as users write it, if it equals what this job
/// would produce from the same commit.
std::optional<std::string> InferenceJob::FindPublished() const {
  const Manifest& manifest = latest();
  const ArrayEntry* const there = NewestOf(manifest, options_.out);
  if (there == nullptr || FactOf(*there, kSamplingFact) !=
                              DescribeDraws(options_.data.sampling, sampling_.edge_weights))
    return std::nullopt;
  for (const auto& [name, value] : Attributes()) {
    const std::string_view found = FactOf(*there, name);
    if (name == kCommitsAttribute && found.empty()) continue;  // written by an older version
    if (name == "snapshot" ? WithoutVersion(found) != WithoutVersion(value) : found != value)
      return std::nullopt;
  }
  if (there->codec.kind != options_.codec.kind || there->codec.level != options_.codec.level)
    return std::nullopt;
  const auto version = SplitVersion(there->name);
  if (version.has_value() != (options_.new_version || options_.live || options_.keep > 0))
    return std::nullopt;
  if (!version) return there->name;
  const std::string live = fmt::format("{}@{}", options_.out, kLiveAlias);
  if (options_.live && manifest.FindArray(live) != there) return std::nullopt;
  return fmt::format("{}@{}", options_.out, version->second);
}

/// Describes everything on which the result's bytes depend. A killed run is resumed only if its
/// description is equal. `base`: base of an incremental run, or null.
std::string InferenceJob::Describe(const IncrementalBase* base) const {
  const Manifest& manifest = store_->manifest();
  nlohmann::json files = nlohmann::json::array();
  for (const ArrayEntry& array : EntriesOf(*store_, options_.data.features, inputs_)) {
    const std::string folder = ArrayFolder(array.name) + "/";  // may be a version
    for (const FileEntry& file : manifest.files) {
      if (file.path.starts_with(folder)) files.push_back(ToHex(file.xxh3));
    }
  }
  const std::string all = files.dump();
  nlohmann::json description = {
      {"job", "infer"},
      {"format", kLogFormat},
      {"generation", manifest.generation},
      {"sequence", graph_->sequence()},
      {kStateField, State().ToString()},
      {"features", inputs_.empty() ? options_.data.features : DescribeInputs(inputs_)},
      {"features_xxh3", ToHex(Xxh3(std::as_bytes(std::span(all))))},
      {"model_xxh3", ToHex(model_file_.hash)},
      {"fanouts", options_.fanouts},
      {"chunk_rows", options_.chunk_rows},
      {"inner_rows", options_.inner_rows},
      {"seed", options_.seed},
      {"scores", options_.scores},
      {"base", base == nullptr ? "" : base->name},
      {"base_id", base == nullptr ? 0 : base->array->entry().array_id},
      {"labels", labels_ ? options_.data.labels + "/" + options_.data.split : ""},
      {"codec", std::string(CodecName(options_.codec.kind))},
      {"level", options_.codec.level}};
  if (std::string draws = DescribeDraws(options_.data.sampling, sampling_.edge_weights);
      !draws.empty())
    description["sampling"] = std::move(draws);
  return description.dump();
}

Status InferenceJob::Prepare(std::uint64_t base_bytes, const JobControl& control) {
  LayerwiseOptions& made = layerwise_;
  made.features = options_.data.features;
  made.inputs = inputs_;
  made.fanouts = options_.fanouts;
  made.sampling = sampling_;
  RHIZOME_ASSIGN_OR_RETURN(made.groups, MostGroups(*graph_, *model_, sampling_.sampler.direction));
  made.output.name = options_.out;
  made.output.codec = options_.codec;
  made.output.inner_rows = options_.inner_rows;
  made.output.attributes = Attributes();
  made.output.array_id = NewArrayId(store_->id(), latest(), "infer " + options_.out);
  made.scores = options_.scores;
  made.chunk_rows = options_.chunk_rows;
  made.seed = options_.seed;
  made.threads = std::max<std::uint32_t>(options_.resources.threads, 1);
  made.tuning = options_.tuning;
  // The page cache would count against a memory limit.
  made.direct = options_.resources.memory_bytes != 0;
  RHIZOME_ASSIGN_OR_RETURN(made.output, MakeOutputEntry(*graph_, *model_, made));
  const bool lists_are_read = ListsAreRead(options_, *model_);
  // A worker must report its chunks in order.
  RHIZOME_ASSIGN_OR_RETURN(
      const InferMemory memory,
      DivideMemory({.graph = *graph_,
                    .model = *model_,
                    .options = options_,
                    .layerwise = made,
                    .lists_are_read = lists_are_read,
                    .one_writer = role_ == InferRole::kWorker,
                    .base_bytes = base_bytes,
                    .pinned_bytes = device_ == nullptr ? 0 : device_->host_bytes()}));
  made.memory = memory.layers;
  made.tuning.block_rows = memory.block_rows;
  if (!lists_are_read) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(
      lists_, ListsOnDisk::Open(*graph_, sampling_.sampler.direction, memory.neighbor_cache_bytes,
                                {}, options_.resources.io, control));
  made.neighbors = lists_->source();
  return Status::Ok();
}

Status InferenceJob::UseDevice(const ComputeDevice& device) {
  RHIZOME_ASSIGN_OR_RETURN(device_,
                           DeviceTiles::Open(device, *model_, options_.device_memory_bytes));
  return Status::Ok();
}

Result<IncrementalPlan> InferenceJob::FindBase() const {
  if (!options_.incremental) return IncrementalPlan{};
  return PlanIncremental(*graph_, layerwise_.output);
}

LayerwiseInput InferenceJob::Input(const Path& scratch, InferenceLog* log) const {
  return {.graph = *graph_,
          .model = *model_,
          .labels = labels_ ? &*labels_ : nullptr,
          .scratch = scratch,
          .log = log,
          .device = device_.get()};
}

Result<LayerwiseResult> InferenceJob::Run(const Path& scratch, const IncrementalBase* base,
                                          InferenceWorkers* workers,
                                          const JobControl& control) const {
  LayerwiseInput input = Input(scratch, nullptr);
  if (options_.mode == InferMode::kSamplewise) return RunSamplewise(input, layerwise_, control);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceLog> log,
                           InferenceLog::Open(store_->fs(), scratch / "LOG", Describe(base)));
  if (log->by_numbers() && options_.note) {
    options_.note(
        "an older version of Rhizome began this run and recorded only commit numbers, so it was "
        "not checked whether the store is a copy that has diverged");
  }
  input.log = log.get();
  input.workers = workers;
  return base == nullptr ? RunLayerwise(input, layerwise_, control)
                         : RunIncremental(*base, input, control);
}

/// Recomputes the rows that may have changed, in each layer only for the vertices that they need,
/// and writes the merged array.
Result<LayerwiseResult> InferenceJob::RunIncremental(const IncrementalBase& base,
                                                     const LayerwiseInput& input,
                                                     const JobControl& control) const {
  LayerwiseResult result;
  if (base.stale.empty()) {
    result.layers.resize(model_->layers());
  } else {
    LayerwiseOptions stale_only = layerwise_;
    stale_only.targets = base.stale;
    LayerwiseInput unlabelled = input;
    unlabelled.labels = nullptr;
    RHIZOME_ASSIGN_OR_RETURN(result, RunLayerwise(unlabelled, stale_only, control));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      MergedArray merged,
      MergeIncremental({.graph = *graph_,
                        .model = *model_,
                        .labels = input.labels,
                        .scores = layerwise_.scores,
                        .layer = model_->layers(),
                        .output = layerwise_.output},
                       base, result.output, input.scratch / "merged", input.log, control));
  result.output = std::move(merged.written);
  result.accuracy = merged.accuracy;
  result.non_finite_rows = merged.non_finite_rows;
  result.resumed_chunks += merged.resumed_chunks;
  return result;
}

Result<InferLayerReport> InferenceJob::RunPart(const LayerPart& part, ChunkProgress progress,
                                               const JobControl& control) const {
  const Path scratch = JobScratch::FolderOf(*store_, ScratchName());
  auto log = InferenceLog::Read(store_->fs(), scratch / "LOG", Describe(nullptr));
  if (!log && log.error().code() == StatusCode::kInvalidArgument) {
    return Fail(Status::Busy("the store was written to while workers started; run it again"));
  }
  if (!log) return Fail(log.error());
  return RunLayerPart(Input(scratch, log->get()), layerwise_, part, std::move(progress), control);
}

std::optional<ListReadsReport> InferenceJob::list_reads() const {
  if (lists_ == nullptr) return std::nullopt;
  return lists_->report();
}

}  // namespace internal
}  // namespace rhizome
