#include "gnn/link_train/train_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gnn/infer/infer_array.h"
#include "gnn/link_train/link_epochs.h"
#include "gnn/link_train/link_job.h"
#include "gnn/link_train/link_objective.h"
#include "gnn/links/test_links.h"
#include "gnn/options/training_options.h"
#include "gnn/tables/publish_table.h"
#include "gnn/train/train.h"
#include "index/arrays/publish_array.h"
#include "rhizome/infer_options.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Options that are for vertices with labels.
constexpr std::array kLabelFields = {"data.labels", "data.split", "learning.loss.class_weights",
                                     "learning.loss.label_smoothing"};

Status CheckLinkMode(const TrainOptions& options) {
  if (options.full_graph() != nullptr)
    return Status::Unsupported("`task=link` trains on minibatches: omit `full_graph`");
  if (options.minibatch()->device)
    return Status::Unsupported("`device=cuda` is not for `task=link` yet: train on the CPU");
  if (options.minibatch()->ranks)
    return Status::Unsupported("`ranks` are not for `task=link` yet: train in one process");
  return Status::Ok();
}

/// Checks that there is a criterion for options that need a validation set.
Status CheckValid(const TrainOptions& options) {
  const LearningOptions& learning = options.learning;
  const bool plateau = learning.schedule.kind == ScheduleKind::kPlateau;
  if (!options.link.valid.empty() || (learning.patience == 0 && !plateau)) return Status::Ok();
  return Status::InvalidArgument(
      "`patience` and `schedule=plateau` need a validation set: give a file of edges by `valid`");
}

Status CheckLinkOptions(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckLinkMode(options));
  for (const std::string& field : FieldsGiven(options))
    if (std::find(kLabelFields.begin(), kLabelFields.end(), field) != kLabelFields.end())
      return Status::InvalidArgument(
          fmt::format("`{}` is for vertices with labels; omit it with `task=link`", field));
  if (options.learning.train_metrics)
    return Status::InvalidArgument(
        "metrics of the training set are for vertices with labels; omit them");
  RHIZOME_RETURN_IF_ERROR(CheckValid(options));
  RHIZOME_RETURN_IF_ERROR(CheckTestOptions(options));
  if (const std::optional<Metric> monitor = options.learning.monitor;
      monitor && *monitor != Metric::kLoss && *monitor != Metric::kMrrSampled)
    return Status::InvalidArgument(
        fmt::format("`monitor={}`: the task link has mrr_sampled and loss", MetricName(*monitor)));
  const auto head = options.model.options.find("head");
  if (head != options.model.options.end() && head->second != "none")
    return Status::InvalidArgument(fmt::format(
        "option head={} is for vertices with labels; with `task=link` the last layer computes the "
        "rows",
        head->second));
  if (!options.link.out_array.empty() && options.job.out.empty())
    return Status::InvalidArgument(
        "`out_array` needs `out`: a file for the model and the decoder that go with the rows");
  return Status::Ok();
}

/// Returns the options of the encoder: its last layer computes the rows of the decoder.
TrainOptions EncoderOptions(const TrainOptions& options) {
  TrainOptions encoder = options;
  encoder.model.options["head"] = "none";
  encoder.learning.test = false;
  return encoder;
}

/// Completes a job: the width of the rows, and the weights and the file of the decoder.
Status PrepareLinkJob(const TrainOptions& options, std::unique_ptr<LinkJob>& links, TestLinks& test,
                      TrainJob& job) {
  RHIZOME_ASSIGN_OR_RETURN(test, TestLinks::Read(*job.graph, options.link));
  RHIZOME_ASSIGN_OR_RETURN(links, OpenLinkJob(options, job.graph->Snapshot()));
  job.notes.insert(job.notes.end(), links->warnings.begin(), links->warnings.end());
  job.labels.columns = static_cast<std::size_t>(links->dim);
  job.max_seeds = MaxSeeds(*links);
  job.add_decoder = [of = links.get()](Model& model, std::uint64_t seed) {
    model.SetDecoder(FirstDecoderWeights(*of, seed));
  };
  job.decoder_by_relation = links->decoding.step.relation_width > 0;
  job.metadata = DecoderMetadata(links->decoding);
  job.objective = DescribeLinkJob(*links, options.link);
  return Status::Ok();
}

/// Computes the rows of all vertices with the trained encoder, and publishes them or passes them to
/// `take`.
Status ComputeRows(const TrainOptions& options,
                   const std::function<Status(const InferResult&)>& take,
                   const JobControl& control) {
  InferOptions infer;
  infer.take = take;
  infer.store = options.store;
  infer.scratch = options.job.scratch;
  infer.model_file = options.job.out;
  infer.data = options.data;
  infer.seed = options.learning.seed;
  infer.out = take ? options.job.name + "_test" : options.link.out_array;
  infer.resources = options.resources;
  infer.note = options.job.note;
  const Result<InferReport> report = InferArray(infer, control);
  return report ? Status::Ok() : report.error();
}

/// Ranks the test edges by the published rows, or else by rows that are removed afterwards.
Result<LinkEvaluation> RankTest(const TestLinks& test, const TrainOptions& options,
                                std::uint64_t held_bytes, const JobControl& control) {
  if (!options.link.out_array.empty()) return test.Rank(options, held_bytes, control);
  std::optional<LinkEvaluation> found;
  const auto take = [&](const InferResult& result) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const LinkTable table, LinkTable::OfRows(result.graph, result.array));
    RHIZOME_ASSIGN_OR_RETURN(found, test.RankBy(table, options, held_bytes, control));
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(ComputeRows(options, take, control));
  return *std::move(found);
}

}  // namespace

// Trains in these steps: (1) checks the options; (2) trains encoder and decoder (TrainModel), which
// opens the links when the graph is open (PrepareLinkJob); (3) publishes the rows of all vertices;
// (4) ranks the test edges by these rows.
Result<TrainReport> TrainLinks(const TrainOptions& given, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckLinkOptions(given));
  const TrainOptions options = EncoderOptions(given);
  const std::string& array = options.link.out_array;
  if (!array.empty()) {
    FileSystem& fs = FileSystem::Posix();
    RHIZOME_ASSIGN_OR_RETURN(const auto store,
                             Store::Open(fs, options.store, Store::Mode::kRead, {}));
    RHIZOME_RETURN_IF_ERROR(CheckNewArray(*store, array));
    RHIZOME_RETURN_IF_ERROR(ArrayChange::CheckNoWriter(fs, options.store));
  }
  std::unique_ptr<LinkJob> links;
  TestLinks test;
  const auto prepare = [&](const TrainOptions& of, TrainJob& job) {
    return PrepareLinkJob(of, links, test, job);
  };
  const auto once = [&](const OneTraining& one) {
    LinkObjective objective(*links, *one.job.model, one.options.resources.threads);
    return TrainOnSeeds(one, LinkTrainingSeeds(*links, one.options), objective);
  };
  RHIZOME_ASSIGN_OR_RETURN(TrainReport report, TrainModel(options, once, prepare, control));
  links.reset();
  if (!array.empty()) RHIZOME_RETURN_IF_ERROR(ComputeRows(given, {}, control));
  if (!test.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(report.link_test, RankTest(test, given, report.memory.held, control));
  }
  return report;
}

}  // namespace internal
}  // namespace rhizome
