#include "gnn/tables/table_job.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "gnn/links/decoder_registry.h"
#include "gnn/options/training_options.h"
#include "index/base/counter_random.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The options that a training of a table reads, beside the group `table`.
constexpr std::array kFields = {"model.kind",
                                "learning.task",
                                "learning.epochs",
                                "learning.learning_rate",
                                "learning.optimizer.kind",
                                "learning.seed",
                                "resources.threads",
                                "resources.memory_bytes",
                                "minibatch.batch_size",
                                "job.name",
                                "job.scratch",
                                "job.checkpoint_every",
                                "job.resume",
                                "job.out"};

Result<RowOptimizerKind> OptimizerOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdam:
      return RowOptimizerKind::kAdam;
    case OptimizerKind::kSgd:
      return RowOptimizerKind::kSgd;
    case OptimizerKind::kAdagrad:
      return RowOptimizerKind::kAdagrad;
    case OptimizerKind::kAdagradRow:
      return RowOptimizerKind::kAdagradRow;
    case OptimizerKind::kAdamW:
      break;
  }
  return Fail(Status::InvalidArgument(
      "`optimizer=adamw`: rows of a table learn by adagrad, adagrad-row, adam or sgd"));
}

Status CheckTableOptions(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckRanges(options));
  if (options.minibatch() == nullptr)
    return Status::InvalidArgument("`model=table` trains on minibatches: omit `full_graph`");
  if (options.minibatch()->device)
    return Status::Unsupported("`device=cuda` is not for `model=table`, which the CPU trains");
  if (options.minibatch()->ranks)
    return Status::Unsupported("`ranks` are not for `model=table`: train it in one process");
  if (options.learning.task && *options.learning.task != Task::kLink)
    return Status::InvalidArgument(fmt::format("`task={}`: `model=table` is for `task=link`",
                                               TaskName(*options.learning.task)));
  for (const std::string& field : FieldsGiven(options)) {
    const bool is_read = field.starts_with("table.") ||
                         std::find(kFields.begin(), kFields.end(), field) != kFields.end();
    if (!is_read)
      return Status::InvalidArgument(
          fmt::format("`{}` has no effect with `model=table`; omit it", field));
  }
  if (!options.model.options.empty())
    return Status::InvalidArgument(
        fmt::format("option {} of networks has no effect with `model=table`; omit it",
                    options.model.options.begin()->first));
  return Status::Ok();
}

/// Returns the names of the relations, one for each row.
std::vector<std::string> RelationNames(const GraphSnapshot& graph) {
  std::vector<std::string> names = graph.edge_types();
  if (names.empty()) names.emplace_back("edge");
  return names;
}

Status MakeDecoder(const TableModelOptions& table, TableJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(job.kind, FindDecoderKind(table.decoder));
  if (job.kind->complex_rows && table.dim % 2 != 0)
    return Status::InvalidArgument(
        fmt::format("`dim` is {}, but rows of decoder {} are complex numbers: give an even number",
                    table.dim, job.kind->name));
  job.step = {.loss = table.loss,
              .margin = static_cast<float>(table.margin),
              .n3 = static_cast<float>(table.n3),
              .reciprocal = table.reciprocal,
              .complex_rows = job.kind->complex_rows,
              .relations = RelationNames(*job.graph).size(),
              .relation_width = 0,
              .relation_stride = 0};
  if (job.kind->relation_width != nullptr) {
    const std::size_t width = job.kind->relation_width(table.dim);
    job.step.relation_width = width;
    job.step.relation_stride = width + RowOptimizer::StateFloats(job.optimizer.kind, width);
  } else if (table.reciprocal) {
    return Status::InvalidArgument(
        fmt::format("`reciprocal` is for decoders with relations; {} has none", job.kind->name));
  }
  // Decoders with weights of their own cannot be made without a file.
  auto made = job.kind->make({.dim = table.dim, .file = TensorFile()});
  if (made) job.made = *std::move(made);
  job.decoder = dynamic_cast<const QueryDecoder*>(job.made.get());
  if (job.decoder == nullptr)
    return Status::Unsupported(fmt::format(
        "`decoder={}`: tables are trained with decoders whose negatives share a query, such as "
        "complex",
        job.kind->name));
  return Status::Ok();
}

std::string Describe(const TableJob& job, const TrainOptions& options) {
  const TableModelOptions& table = options.table;
  return nlohmann::json{{"job", "train table"},
                        {"store", job.store->id().ToString()},
                        {"state", job.graph->StateWith({}).ToString()},
                        {"generation", job.store->manifest().generation},
                        {"dim", table.dim},
                        {"decoder", table.decoder},
                        {"reciprocal", table.reciprocal},
                        {"loss", static_cast<int>(table.loss)},
                        {"margin", table.margin},
                        {"n3", table.n3},
                        {"negatives", table.negatives},
                        {"negative_sources", table.negative_sources},
                        {"batch_size", job.batching.batch_size},
                        {"optimizer", RowOptimizerName(job.optimizer.kind)},
                        {"learning_rate", options.learning.learning_rate},
                        {"seed", options.learning.seed}}
      .dump();
}

/// Fills a row with uniform numbers in (-limit, limit).
void FillUniform(const RandomKey& key, float limit, std::span<float> row) {
  CounterRandom random(key);
  for (float& x : row) x = static_cast<float>(2 * random.Unit() - 1) * limit;
}

/// Half the width of the range of first numbers. For distances as in TransE's paper (Bordes et
/// al., NeurIPS 2013, algorithm 1); products have a standard deviation of .1.
float Limit(const TableJob& job) {
  const bool product = job.decoder->combination() == Combination::kDot;
  return product ? 0.1F * std::numbers::sqrt3_v<float>
                 : 6 / std::sqrt(static_cast<float>(job.dim()));
}

// Streams of random numbers of a training; LinkBatches uses others.
constexpr std::uint32_t kRowStream = 101;
constexpr std::uint32_t kRelationStream = 102;

}  // namespace

Result<TableJob> OpenTableJob(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckTableOptions(options));
  TableJob job;
  RHIZOME_ASSIGN_OR_RETURN(job.optimizer.kind, OptimizerOf(options.learning.optimizer.kind));
  job.optimizer.learning_rate = static_cast<float>(options.learning.learning_rate);
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead,
                                       {.scratch = options.job.scratch}));
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(std::as_const(*job.store), {}));
  RHIZOME_RETURN_IF_ERROR(MakeDecoder(options.table, job));
  job.batching.batch_size = options.minibatch()->batch_size;
  job.batching.seed = options.learning.seed;
  job.batching.negatives = options.table.negatives;
  auto mixture = ParseNegativeMixture(options.table.negative_sources);
  if (!mixture) return Fail(mixture.error().WithContext("`negative_sources`"));
  job.batching.mixture = *std::move(mixture);
  RHIZOME_ASSIGN_OR_RETURN(job.batches, LinkBatches::Of(job.graph, job.batching));
  if (job.batches->batches() == 0)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has no edges to train on", options.store.string())));
  job.description = Describe(job, options);
  return job;
}

std::vector<float> FirstRelations(const TableJob& job, std::uint64_t seed) {
  const std::size_t width = job.step.relation_width;
  const std::size_t stride = job.step.relation_stride;
  std::vector<float> rows(job.relation_rows() * stride);
  // Narrower rows are angles.
  const float limit = width < job.dim() ? std::numbers::pi_v<float> : Limit(job);
  for (std::size_t r = 0; width != 0 && r < job.relation_rows(); ++r)
    FillUniform({.seed = seed, .vertex = r, .stream = kRelationStream}, limit,
                std::span(rows).subspan(r * stride, width));
  return rows;
}

void FirstValue(const TableJob& job, std::uint64_t seed, VertexId vertex, std::span<float> value) {
  FillUniform({.seed = seed, .vertex = static_cast<std::uint64_t>(vertex), .stream = kRowStream},
              Limit(job), value);
}

TensorFile DecoderFile(const TableJob& job, std::span<const float> relations) {
  TensorFile file;
  file.metadata["decoder"] = job.kind->name;
  const std::size_t width = job.step.relation_width;
  if (width == 0) return file;
  file.metadata["relation_names"] = nlohmann::json(RelationNames(*job.graph)).dump();
  file.metadata["reciprocal"] = job.step.reciprocal ? "true" : "false";
  NamedTensor& tensor = file.tensors["relations"];
  tensor.shape = {static_cast<std::int64_t>(job.relation_rows()), static_cast<std::int64_t>(width)};
  for (std::size_t r = 0; r < job.relation_rows(); ++r) {
    const auto row = relations.subspan(r * job.step.relation_stride, width);
    tensor.values.insert(tensor.values.end(), row.begin(), row.end());
  }
  return file;
}

}  // namespace internal
}  // namespace rhizome
