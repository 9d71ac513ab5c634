#include "gnn/tables/table_job.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "gnn/links/test_links.h"
#include "gnn/options/training_options.h"
#include "gnn/train/row_optimizer_kind.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The options that a training of a table reads, beside the group `link`.
constexpr std::array kFields = {"model.kind",
                                "learning.task",
                                "learning.epochs",
                                "learning.eval_every",
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
    if (field == "link.keep_seed_edges")
      return Status::InvalidArgument(
          fmt::format("`{}` is for encoders, not for `model=table`; omit it", field));
    if (field == "learning.eval_every" && options.link.valid.empty())
      return Status::InvalidArgument(
          "`eval_every` has no effect without a validation set: omit it, or give `valid`");
    const bool is_read = field.starts_with("link.") ||
                         std::find(kFields.begin(), kFields.end(), field) != kFields.end();
    if (!is_read)
      return Status::InvalidArgument(
          fmt::format("`{}` has no effect with `model=table`; omit it", field));
  }
  RHIZOME_RETURN_IF_ERROR(CheckTestOptions(options));
  if (!options.link.test_edges.empty() && options.link.out_array.empty())
    return Status::InvalidArgument(
        "`test_edges` ranks by the rows of the table: give `out_array`, the array that gets them");
  if (!options.model.options.empty())
    return Status::InvalidArgument(
        fmt::format("option {} of networks has no effect with `model=table`; omit it",
                    options.model.options.begin()->first));
  return Status::Ok();
}

Status MakeDecoder(const LinkTrainOptions& link, TableJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(static_cast<LinkDecoding&>(job),
                           MakeLinkDecoding(link, "complex", *job.graph));
  if (job.decoder == nullptr)
    return Status::Unsupported(fmt::format(
        "`decoder={}`: tables are trained with decoders whose negatives share a query, such as "
        "complex",
        job.kind->name));
  const std::size_t width = job.step.relation_width;
  if (width != 0) job.step.relation_stride += RowOptimizer::StateFloats(job.optimizer.kind, width);
  return Status::Ok();
}

std::string Describe(const TableJob& job, const TrainOptions& options) {
  const LinkTrainOptions& link = options.link;
  return nlohmann::json{{"job", "train table"},
                        {"store", job.store->id().ToString()},
                        {"state", job.graph->StateWith({}).ToString()},
                        {"generation", job.store->manifest().generation},
                        {"dim", link.dim},
                        {"decoder", job.kind->name},
                        {"reciprocal", link.reciprocal},
                        {"loss", static_cast<int>(link.loss)},
                        {"margin", link.margin},
                        {"n3", link.n3},
                        {"negatives", job.batching.negatives},
                        {"negative_sources", link.negative_sources},
                        {"filter_negatives", link.filter_negatives},
                        {"valid", job.valid.hash},
                        {"batch_size", job.batching.batch_size},
                        {"optimizer", RowOptimizerName(job.optimizer.kind)},
                        {"learning_rate", options.learning.learning_rate},
                        {"seed", options.learning.seed}}
      .dump();
}

}  // namespace

Result<TableJob> OpenTableJob(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckTableOptions(options));
  TableJob job;
  const auto kind = RowOptimizerOf(options.learning.optimizer.kind);
  if (!kind)
    return Fail(Status::InvalidArgument(
        "`optimizer=adamw`: rows of a table learn by adagrad, adagrad-row, adam or sgd"));
  job.optimizer.kind = *kind;
  job.optimizer.learning_rate = static_cast<float>(options.learning.learning_rate);
  RHIZOME_ASSIGN_OR_RETURN(job.store,
                           Store::Open(FileSystem::Posix(), options.store, Store::Mode::kRead,
                                       {.scratch = options.job.scratch}));
  RHIZOME_ASSIGN_OR_RETURN(job.graph, Graph::Open(std::as_const(*job.store), {}));
  RHIZOME_RETURN_IF_ERROR(MakeDecoder(options.link, job));
  RHIZOME_ASSIGN_OR_RETURN(static_cast<TrainingBatches&>(job),
                           OpenTrainingBatches(options, job, job.graph));
  RHIZOME_ASSIGN_OR_RETURN(job.valid, ReadValidLinks(options, job.graph));
  if (options.link.filter_negatives) {
    RHIZOME_ASSIGN_OR_RETURN(NegativeFilter filter, NegativeFilter::Of(job.graph, job.valid.edges));
    job.filter.emplace(std::move(filter));
  }
  job.description = Describe(job, options);
  return job;
}

std::vector<float> FirstRelations(const TableJob& job, std::uint64_t seed) {
  const std::size_t stride = job.step.relation_stride;
  std::vector<float> rows(job.relation_rows() * stride);
  for (std::size_t r = 0; stride != 0 && r < job.relation_rows(); ++r)
    SetFirstRelationRow(job, seed, r, std::span(rows).subspan(r * stride, job.step.relation_width));
  return rows;
}

TensorFile DecoderFile(const TableJob& job, std::span<const float> relations) {
  TensorFile file;
  file.metadata = DecoderMetadata(job);
  const std::size_t width = job.step.relation_width;
  if (width == 0) return file;
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
