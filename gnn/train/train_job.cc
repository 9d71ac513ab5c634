#include "gnn/train/train_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/feed/class_names.h"
#include "cache/feed/epoch_plan.h"
#include "cache/feed/inputs.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/job/job_description.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/layerwise_run.h"
#include "gnn/models/shape_types.h"
#include "gnn/options/training_options.h"
#include "gnn/train/class_weights.h"
#include "rhizome/text_values.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Checks that an array for each vertex type is given only where several arrays are supported.
Status CheckInputsMode(const TrainOptions& options) {
  if (options.data.inputs.empty()) return Status::Ok();
  const MinibatchOptions* const minibatch = options.minibatch();
  const char* const other = minibatch == nullptr ? "`full_graph`"
                            : minibatch->ranks   ? "training over ranks"
                            : minibatch->device  ? "`device=cuda`"
                                                 : nullptr;
  if (other == nullptr) return Status::Ok();
  return Status::Unsupported(
      fmt::format("an array for each vertex type (`features`) is not supported with {} yet; train "
                  "on minibatches in one process on the CPU, or name one array",
                  other));
}

Status CheckLabelNames(const TrainOptions& options) {
  if (options.data.labels.empty() || options.data.split.empty())
    return Status::InvalidArgument("the arrays of labels and of the split must be named");
  for (const std::string& features : FeatureArrays(options.data.features, options.data.inputs)) {
    if (options.data.labels != features) continue;
    return Status::InvalidArgument(
        fmt::format("array {} cannot be both features and labels", options.data.labels));
  }
  return Status::Ok();
}

Status CheckTrainOptions(const TrainOptions& options) {
  const std::vector<std::int64_t> fanouts = FanoutsOf(options);
  const std::size_t hops =
      options.data.sampling.typed_fanouts.empty() ? fanouts.size() : HopsOf(options.data.sampling);
  if (!options.model.no_edges && hops != options.model.layers) {
    return Status::InvalidArgument(
        fmt::format("{} fanouts for {} layers; give one for each layer, such as `fanouts=10,10`",
                    hops, options.model.layers));
  }
  if (options.learning.task != Task::kLink) RHIZOME_RETURN_IF_ERROR(CheckLabelNames(options));
  RHIZOME_RETURN_IF_ERROR(CheckInputsMode(options));
  if (options.learning.epochs > EpochPlan::kMaxEpochs) {
    return Status::InvalidArgument(fmt::format("{} epochs; at most {} are possible",
                                               options.learning.epochs, EpochPlan::kMaxEpochs));
  }
  RHIZOME_RETURN_IF_ERROR(CheckRanges(options));
  // Checks now that the results can be written, rather than after hours of training.
  const Path trace = options.minibatch() != nullptr ? options.minibatch()->trace : Path();
  for (const Path& path : {options.job.out, trace}) {
    if (path.empty()) continue;
    const Result<OutputFile> probe = OutputFile::Create(path);
    if (!probe) return probe.error();
  }
  return Status::Ok();
}

/// Checks the options that depend on the task and on the validation set.
Status CheckTask(const TrainOptions& options, const TrainJob& job) {
  const Task task = job.labels.task;
  const std::vector<Metric> metrics = MetricsOf(task);
  if (job.monitor != Metric::kLoss &&
      std::find(metrics.begin(), metrics.end(), job.monitor) == metrics.end()) {
    std::vector<std::string_view> names;
    for (const Metric metric : metrics) names.push_back(MetricName(metric));
    return Status::InvalidArgument(fmt::format("`monitor={}`: the task {} has {} and loss",
                                               MetricName(job.monitor), TaskName(task),
                                               fmt::join(names, ", ")));
  }
  const bool classes = task == Task::kMulticlass || task == Task::kBinary;
  if (!classes &&
      (!options.learning.loss.class_weights.empty() || options.learning.loss.label_smoothing > 0)) {
    return Status::InvalidArgument(fmt::format(
        "class weights and label smoothing are for multiclass and binary tasks, not for {}",
        TaskName(task)));
  }
  if (!job.valid.empty()) return Status::Ok();
  if (options.learning.patience == 0 && options.learning.schedule.kind != ScheduleKind::kPlateau)
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("`patience` and `schedule=plateau` need a validation set, and array {} puts no "
                  "vertex into it (value 1)",
                  options.data.split));
}

/// If the model has a batch norm over target vertices, checks that some training minibatch has more
/// than one vertex: a single row has no variance, and the statistics would never be learnt.
Status CheckBatchNorms(const TrainOptions& options, const TrainJob& job) {
  const MinibatchOptions* const minibatch = options.minibatch();
  if (minibatch == nullptr || !job.model->layer(job.model->layers() - 1).norms_targets())
    return Status::Ok();
  const bool several = job.labels.task == Task::kLink || job.train.size() > 1;
  if (minibatch->batch_size > 1 && several) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("a batch norm needs minibatches of more than one vertex, but {}, or train a "
                  "model without batch norm (gin has one in each layer)",
                  minibatch->batch_size == 1 ? "the batch size is 1; raise it"
                                             : "the training set has one vertex; add more"));
}

/// Checks that the store keeps the lists that layers use, and the opposite direction's.
/// Checked before ResolveSampling, whose error about one missing direction would lead the user to
/// ingest that direction in vain.
Status CheckBothSides(const GenerationInfo& info) {
  if (info.symmetric || info.directions == Direction::kBoth) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the store keeps no {}-edges, but `full_graph` aggregates gradients along the "
                  "opposite direction; ingest it with `directions=both`, or with `undirected`",
                  info.directions == Direction::kIn ? "out" : "in"));
}

/// Resolves the sampling options against the graph.
Status ResolveDraws(const TrainOptions& options, TrainJob& job) {
  if (options.model.no_edges) return Status::Ok();
  if (options.full_graph() != nullptr) RHIZOME_RETURN_IF_ERROR(CheckBothSides(job.graph->info()));
  RHIZOME_ASSIGN_OR_RETURN(job.sampling,
                           ResolveSampling(options.data.sampling, options.data.edge_weights,
                                           FanoutsOf(options), *job.graph));
  const std::vector<std::int64_t> eval_fanouts = options.minibatch() != nullptr
                                                     ? options.minibatch()->eval_fanouts
                                                     : std::vector<std::int64_t>();
  RHIZOME_RETURN_IF_ERROR(SetValidSampler(eval_fanouts, options.model.layers, job.sampling));
  if (!options.learning.test || CheckLayerwise(job.sampling).ok()) return Status::Ok();
  return Status::InvalidArgument(
      "the final metrics are computed layer by layer, which this sampling does not support; train "
      "with `test=false`, and measure by an inference with `mode=samplewise`");
}

/// Returns the id of the array that `split` names, which has been read already.
std::uint64_t SplitArrayId(const Manifest& manifest, const std::string& split) {
  return manifest.FindArray(ParseSplitReference(split)->array)->array_id;
}

/// Adds to an error about a missing array how a store gets such an array.
Status WithAdvice(const Status& status, std::string_view advice) {
  if (status.code() != StatusCode::kNotFound) return status;
  return {status.code(), fmt::format("{}; {}", status.message(), advice)};
}

Result<ArrayEntry> FindFeatures(const TrainJob& job, const std::string& name) {
  const auto features = job.store->OpenArray(name);
  if (features) return (*features)->entry();
  return Fail(WithAdvice(
      features.error(),
      "models read a row of numbers for each vertex: name another array (`features`), or ingest "
      "columns of numbers as one array (`feature_columns`)"));
}

/// Finds the array of all vertices, or of each vertex type.
Status FindInputs(const TrainOptions& options, TrainJob& job) {
  if (options.data.inputs.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckSharedInput(*job.graph, options.data.features));
    RHIZOME_ASSIGN_OR_RETURN(job.features, FindFeatures(job, options.data.features));
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(InputArrays arrays,
                           ResolveInputs(*job.graph, options.data.inputs, LearnedInputs::kAccept));
  job.inputs = std::move(arrays.of_types);
  job.notes = std::move(arrays.notes);
  return Status::Ok();
}

Result<Labels> FindLabels(const TrainJob& job, const TrainOptions& options) {
  auto labels =
      ReadTaskLabels(*job.graph, options.data.labels, options.data.split, options.learning.task);
  if (labels) return labels;
  const bool has_labels = job.store->manifest().FindArray(options.data.labels) != nullptr;
  return Fail(WithAdvice(
      labels.error(),
      has_labels ? "name an array with the sets of vertices (`split`), ingest a column 'split', or "
                   "let the ingestion draw the sets (`random_split`)"
                 : "name an array with classes or values (`labels`), or ingest a column 'label'"));
}

/// Reads the labels, and sets the vertices of both sets, the task and what depends on it.
Status ReadTrainLabels(const TrainOptions& options, TrainJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(job.labels, FindLabels(job, options));
  RHIZOME_ASSIGN_OR_RETURN(job.class_names, ReadClassNames(*job.graph, options.data.labels));
  job.train = job.labels.Members(*job.graph, Split::kTrain);
  job.valid = job.labels.Members(*job.graph, Split::kValid);
  RHIZOME_RETURN_IF_ERROR(CheckTrainingSet(job.train, options.data.split));
  job.monitor = options.learning.monitor.value_or(MainMetric(job.labels.task));
  RHIZOME_RETURN_IF_ERROR(CheckTask(options, job));
  RHIZOME_ASSIGN_OR_RETURN(job.class_weights,
                           ClassWeights(options.learning.loss.class_weights, job.labels));
  return Status::Ok();
}

}  // namespace

// Checks the options, then opens and checks the inputs in this order: store, graph, features,
// labels, training and validation set, sampling, task, class weights, `init`, and the model.
Result<TrainJob> OpenTrainJob(const TrainOptions& options, const PrepareJob& prepare) {
  RHIZOME_RETURN_IF_ERROR(CheckTrainOptions(options));
  TrainJob job;
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead,
                                       {.scratch = options.job.scratch}));
  RHIZOME_ASSIGN_OR_RETURN(
      job.graph, Graph::Open(std::as_const(*job.store), {.topology = options.data.topology}));
  if (job.graph->live_vertex_count() == 0)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has no vertices to train on; put some first", options.store.string())));
  RHIZOME_RETURN_IF_ERROR(FindInputs(options, job));
  if (prepare) {
    job.labels.task = Task::kLink;
    RHIZOME_RETURN_IF_ERROR(prepare(options, job));
    job.monitor = options.learning.monitor.value_or(MainMetric(job.labels.task));
  } else {
    RHIZOME_RETURN_IF_ERROR(ReadTrainLabels(options, job));
  }
  RHIZOME_RETURN_IF_ERROR(ResolveDraws(options, job));
  if (!options.learning.init.empty()) {
    auto loaded = LoadSafetensors(job.store->fs(), options.learning.init);
    if (!loaded) return Fail(OfNamedFile(loaded.error(), options.learning.init));
    job.init = *std::move(loaded);
  }
  RHIZOME_RETURN_IF_ERROR(MakeModel(options, job));
  RHIZOME_RETURN_IF_ERROR(CheckBatchNorms(options, job));
  job.model->FitSampling(job.sampling);
  RHIZOME_RETURN_IF_ERROR(job.inputs.empty() ? CheckFeatures(job.features, *job.model, *job.graph)
                                             : CheckInputs(*job.graph, *job.model, job.inputs));
  return job;
}

/// Checks that the weights of relations, their gradients and two moments fit into the memory.
Status CheckWeights(const ModelShape& shape, const TrainOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t numbers, CountWeights(shape));
  constexpr std::uint64_t kCopies = 4;
  const std::uint64_t bytes = numbers * sizeof(float) * kCopies;
  if (bytes <= options.resources.memory_bytes || options.resources.memory_bytes == 0)
    return Status::Ok();
  return Status::OutOfMemory(fmt::format(
      "the weights of {} relations, their gradients and moments need {} bytes, more than "
      "`memory_bytes={}`; {}",
      shape.relation_count(), bytes, options.resources.memory_bytes,
      shape.spec.kind == "rgcn" ? "let relations share matrices by option bases"
                                : "choose fewer hidden columns, or more memory"));
}

/// Returns the shape of the job's model.
Result<ModelShape> ShapeOf(const TrainOptions& options, const TrainJob& job) {
  ModelShape shape{.spec = options.model,
                   .inputs = static_cast<std::int64_t>(job.features.dim),
                   .classes = job.labels.outputs()};
  for (const FeatureInput& input : job.inputs) {
    TypedInput& typed = shape.typed_inputs.emplace_back();
    if (input.array.empty()) continue;
    if (const auto columns = LearnedColumns(input.array)) {
      typed = {.array = LearnedArray(input.vertex_type),
               .dim = static_cast<std::int64_t>(*columns)};
      continue;
    }
    const ArrayEntry& array = *job.store->manifest().FindArray(input.array);
    typed = {.array = input.array, .dim = static_cast<std::int64_t>(array.dim)};
  }
  if (!job.inputs.empty()) shape.inputs = options.model.hidden;
  RHIZOME_RETURN_IF_ERROR(
      NameShapeTypes(job.graph->vertex_types(), job.graph->edge_types(), shape));
  shape.by_side = !shape.relations.empty() && WalksTwoSides(*job.graph, job.sampling);
  return shape;
}

Status MakeModel(const TrainOptions& options, TrainJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(const ModelShape shape, ShapeOf(options, job));
  if (!shape.relations.empty()) RHIZOME_RETURN_IF_ERROR(CheckWeights(shape, options));
  RHIZOME_ASSIGN_OR_RETURN(job.model, Model::Create(shape, options.learning.seed));
  RHIZOME_RETURN_IF_ERROR(job.model->FitRelations(shape.relations, shape.by_side));
  if (job.add_decoder) job.add_decoder(*job.model, options.learning.seed);
  if (!job.init) return Status::Ok();
  const Result<Model> first = Model::FromFile(job.init->file);
  if (!first)
    return OfNamedFile(first.error().WithContext(options.learning.init.string()),
                       options.learning.init);
  if (first->shape().vertex_types != shape.vertex_types ||
      first->shape().relations != shape.relations || first->shape().by_side != shape.by_side) {
    return Status::InvalidArgument(fmt::format(
        "`init={}`: it was trained on a graph with other types or directions, or with types in "
        "another order; give a model of this store",
        options.learning.init.string()));
  }
  const TensorFile from = first->ToFile(), into = job.model->ToFile();
  for (const auto& [name, tensor] : into.tensors) {
    const auto found = from.tensors.find(name);
    if (found != from.tensors.end() && found->second.shape == tensor.shape) continue;
    return Status::InvalidArgument(
        fmt::format("`init={}`: its tensor {} {}, but the shape in this model is [{}]; give the "
                    "options with which it was trained",
                    options.learning.init.string(), name,
                    found == from.tensors.end()
                        ? std::string("is missing")
                        : fmt::format("has shape [{}]", fmt::join(found->second.shape, ", ")),
                    fmt::join(tensor.shape, ", ")));
  }
  if (from.tensors.size() != into.tensors.size()) {
    return Status::InvalidArgument(
        fmt::format("`init={}`: it has more tensors than this model; give the options with which "
                    "it was trained",
                    options.learning.init.string()));
  }
  job.model->RestoreWeights(first->CopyWeights());
  return Status::Ok();
}

std::vector<std::string> WarningsOf(const TrainJob& job, const TrainOptions& options) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> warnings = job.notes;
  std::vector<std::string> absent;
  const std::vector<std::uint64_t> counts = job.labels.CountClasses(Split::kTrain);
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (counts[c] == 0) absent.push_back(ShownClass(job.class_names, c));
  if (!absent.empty()) {
    const std::size_t shown = std::min(absent.size(), kShown);
    warnings.push_back(fmt::format(
        "{} of {} classes have no training vertex, so they will not be learnt: {}{}", absent.size(),
        counts.size(),
        fmt::join(absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < absent.size() ? ", ..." : ""));
  }
  if (options.job.out.empty())
    warnings.emplace_back("`out` is not set: the model is measured and not saved");
  return warnings;
}

StateId StateOfJob(const TrainJob& job, const TrainOptions& options) {
  std::vector<std::string> arrays = FeatureArrays(options.data.features, job.inputs);
  if (job.labels.task == Task::kLink) return job.graph->StateWith(arrays);
  arrays.push_back(options.data.labels);
  arrays.push_back(ParseSplitReference(options.data.split)->array);
  return job.graph->StateWith(arrays);
}

std::string DescribeJob(const TrainJob& job, const TrainOptions& options) {
  const Manifest& manifest = job.store->manifest();
  const LearningOptions& learning = options.learning;
  const MinibatchOptions minibatch =
      options.minibatch() != nullptr ? *options.minibatch() : MinibatchOptions();
  nlohmann::json description = {{"job", "train"},
                                {"store", job.store->id().ToString()},
                                {"generation", manifest.generation},
                                {"sequence", job.graph->sequence()},
                                {kStateField, StateOfJob(job, options).ToString()},
                                {"features", job.features.array_id},
                                {"model", DescribeModelShape(job.model->shape())},
                                {"fanouts", FanoutsOf(options)},
                                {"batch_size", minibatch.batch_size},
                                {"steps", minibatch.steps},
                                {"learning_rate", learning.learning_rate},
                                {"weight_decay", learning.weight_decay},
                                {"seed", learning.seed}};
  if (job.labels.task == Task::kLink) {
    description["objective"] = job.objective;
  } else {
    description["labels"] = manifest.FindArray(options.data.labels)->array_id;
    description["split"] = SplitArrayId(manifest, options.data.split);
  }
  // A job that uses none of these options has the description of older versions.
  const auto add = [&](const char* name, const auto& value, const auto& usual) {
    if (value != usual) description[name] = value;
  };
  description.update(DescribeModelOptions(options));
  add("sampling", DescribeDraws(options.data.sampling, job.sampling.edge_weights), std::string());
  add("task", TaskName(job.labels.task), TaskName(Task::kMulticlass));
  add("monitor", MetricName(job.monitor), MetricName(Metric::kAccuracy));
  add("class_weights", job.class_weights, std::vector<float>());
  add("optimizer", static_cast<int>(learning.optimizer.kind), 0);
  if (learning.optimizer.kind == OptimizerKind::kSgd)
    description["momentum"] = learning.optimizer.momentum;
  if (learning.weight_decay > 0) description["decay"] = "matrices";
  add("init", job.init ? ToHex(job.init->hash) : "", "");
  add("full_graph", options.full_graph() != nullptr, false);
  if (!job.inputs.empty()) {
    std::vector<std::uint64_t> ids;
    for (const ArrayEntry& array : EntriesOf(*job.store, {}, job.inputs))
      ids.push_back(array.array_id);
    description["features"] = ids;
    description["inputs"] = DescribeInputs(job.inputs);
  }
  if (options.data.split.find(':') != options.data.split.npos && job.labels.task != Task::kLink)
    description["split_column"] = options.data.split;
  const ScheduleOptions& schedule = learning.schedule;
  const bool scheduled = schedule.kind != ScheduleKind::kConstant || schedule.warmup > 0;
  if (scheduled) {
    description["schedule"] = {static_cast<int>(schedule.kind), schedule.warmup, schedule.every,
                               schedule.factor, learning.min_delta};
  }
  if (scheduled || learning.eval_every > 1) description["epochs"] = learning.epochs;
  return description.dump();
}

}  // namespace internal
}  // namespace rhizome
