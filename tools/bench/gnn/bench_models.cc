#include "tools/bench/gnn/bench_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cache/job/work_clock.h"
#include "rhizome/entry.h"
#include "rhizome/sampler.h"
#include "tools/cli/json.h"
#include "tools/cli/machine.h"
#include "tools/cli/scratch_folder.h"

namespace rhizome {
namespace {

/// Returns the kind of model, and the direction of its edges if it is not the kind's default.
std::string ModelOf(const ModelCase& one) {
  const std::string& kind = one.training.model.kind;
  return one.training.data.sampling.direction == Direction::kBoth ? kind + " both ways" : kind;
}

std::string NameOf(const ModelCase& one) { return fmt::format("{} {}", one.data, ModelOf(one)); }

std::uint32_t RunsOf(const ModelCase& one, const BenchModelsOptions& options) {
  const std::uint32_t runs = options.runs > 0 ? options.runs : one.runs();
  return one.official_splits ? std::min(runs, ModelCase::kSplits) : runs;
}

std::vector<ModelCase> ChosenCases(const BenchModelsOptions& options) {
  std::vector<ModelCase> chosen;
  for (ModelCase& one : AllModelCases()) {
    if (!options.is_long && !one.in_ci) continue;
    if (NameOf(one).find(options.only) != std::string::npos) chosen.push_back(std::move(one));
  }
  return chosen;
}

Json FanoutJson(const TrainOptions& training) {
  const std::vector<std::int64_t>& fanouts = training.minibatch()->fanouts;
  const bool all = std::all_of(fanouts.begin(), fanouts.end(),
                               [](std::int64_t fanout) { return fanout == kAllNeighbors; });
  return all ? Json("all") : Json(fanouts);
}

Json SettingsJson(const TrainOptions& training) {
  const ModelSpec& model = training.model;
  return {{"layers", model.layers},
          {"hidden", model.hidden},
          {"dropout", model.dropout},
          {"normalize_features", model.normalize_features},
          {"options", model.options},
          {"fanout", FanoutJson(training)},
          {"epochs", training.learning.epochs},
          {"patience", training.learning.patience},
          {"learning_rate", training.learning.learning_rate},
          {"weight_decay", training.learning.weight_decay},
          {"decay_layers", training.learning.optimizer.decay_first_layer_only ? "first" : "all"}};
}

/// Returns the fields of a row that are known before training.
Json CaseJson(const ModelCase& one, std::uint32_t runs) {
  const auto share = [](double value) { return value > 0 ? Json(value) : Json(); };
  return {{"data", one.data},
          {"model", ModelOf(one)},
          {"metric", MetricName(one.metric)},
          {"runs", runs},
          {"runs_are", one.official_splits ? "splits" : "seeds"},
          {"published", share(one.published.mean)},
          {"published_deviation", share(one.published.deviation)},
          {"source", one.published.mean > 0 ? Json(one.published.source) : Json()},
          {"least", share(one.least)},
          {"settings", SettingsJson(one.training)}};
}

/// Trains once. `control` receives progress and interruption under the name of the run.
Result<TrainReport> TrainOnce(const ModelCase& one, const Path& store, std::uint32_t run,
                              std::uint32_t runs, const BenchModelsOptions& options,
                              const JobControl& control) {
  TrainOptions training = one.training;
  training.store = store;
  training.resources.threads = options.threads;
  training.learning.seed = run + 1;
  if (one.official_splits) training.data.split = fmt::format("{}:{}", ModelCase::kSplitsArray, run);
  const std::string name = fmt::format("{}, run {} of {}", NameOf(one), run + 1, runs);
  JobControl inner([&](const JobControl::Progress& report) {
    const Status status = control.Report(
        {.phase = name, .done = report.done, .total = report.total, .detail = report.detail});
    if (!status.ok()) inner.Cancel();
  });
  return rhizome_gnn_entry_v1()->Train(training, inner);
}

Json SpreadJson(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return {{"mean", mean}, {"deviation", deviation}, {"values", values}};
}

Result<Json> RunCase(const ModelCase& one, const Path& store, const BenchModelsOptions& options,
                     const JobControl& control) {
  const std::uint32_t runs = RunsOf(one, options);
  Json row = CaseJson(one, runs);
  const WorkClock clock;
  std::vector<double> values;
  std::uint64_t epochs = 0;
  for (std::uint32_t run = 0; run < runs; ++run) {
    RHIZOME_ASSIGN_OR_RETURN(const TrainReport report,
                             TrainOnce(one, store, run, runs, options, control));
    const auto value =
        report.metrics.test ? report.metrics.test->Of(one.metric) : std::optional<double>();
    if (!value) {
      return Fail(Status::InvalidArgument(fmt::format("{}: {} of the test set is not defined",
                                                      NameOf(one), MetricName(one.metric))));
    }
    values.push_back(*value);
    epochs += report.epochs.size();
  }
  row.update(SpreadJson(values));
  row["epochs_a_run"] = epochs / runs;
  row["seconds"] = clock.seconds();
  return row;
}

/// Adds to a row whether its mean meets the bounds; null if there are none.
void Judge(const ModelCase& one, const Json& rows, Json& row) {
  double least = one.least;
  if (one.below_gcn > 0) {
    for (const Json& other : rows) {
      if (other["data"] == one.data && other["model"] == "gcn")
        least = other["mean"].get<double>() - one.below_gcn;
    }
    row["least"] = least > 0 ? Json(least) : Json();
  }
  row["reached"] = least > 0 ? Json(row["mean"].get<double>() >= least) : Json();
}

std::string NoteOf(const Json& row) {
  std::string text =
      fmt::format("{} {}: {} {:.2f} +- {:.2f}", row["data"].get<std::string>(),
                  row["model"].get<std::string>(), row["metric"].get<std::string>(),
                  row["mean"].get<double>() * 100, row["deviation"].get<double>() * 100);
  if (!row["published"].is_null())
    text += fmt::format(", published {:.2f}", row["published"].get<double>() * 100);
  return text;
}

Result<Json> RunCases(const std::vector<ModelCase>& cases, const BenchModelsOptions& options,
                      const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  Json rows = Json::array();
  std::string ingested;
  for (const ModelCase& one : cases) {
    const Path store = scratch.path() / one.data;
    if (ingested != one.data) {
      RHIZOME_RETURN_IF_ERROR(IngestDataSet(options.data / one.data, store, control));
      ingested = one.data;
    }
    RHIZOME_ASSIGN_OR_RETURN(Json row, RunCase(one, store, options, control));
    Judge(one, rows, row);
    if (options.note) options.note(NoteOf(row));
    rows.push_back(std::move(row));
  }
  return rows;
}

void AddFigure(Json& json) {
  std::uint64_t asked = 0;
  std::uint64_t reached = 0;
  for (const Json& row : json["rows"]) {
    if (row["reached"].is_null()) continue;
    ++asked;
    reached += row["reached"].get<bool>() ? 1 : 0;
  }
  json["figure"] = asked == 0 ? 1.0 : static_cast<double>(reached) / static_cast<double>(asked);
  json["unit"] = "share of the rows that reach what is asked of them";
}

}  // namespace

// Selects the cases, lists them if requested, otherwise trains each case several times (RunCases)
// and reports mean, deviation and the published result.
Result<Json> BenchModels(const BenchModelsOptions& options, const JobControl& control) {
  const std::vector<ModelCase> cases = ChosenCases(options);
  if (cases.empty()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "--only: no case of this tier contains '{}'; --list shows all cases", options.only)));
  }
  const WorkClock clock;
  Json json = {{"workload", "models"},
               {"tier", options.is_long ? "long" : "ci"},
               {"threads", options.threads}};
  if (options.list) {
    json["rows"] = Json::array();
    for (const ModelCase& one : cases) json["rows"].push_back(CaseJson(one, RunsOf(one, options)));
    return json;
  }
  RHIZOME_ASSIGN_OR_RETURN(json["rows"], RunCases(cases, options, control));
  AddFigure(json);
  json["seconds"] = clock.seconds();
  json["machine"] = DescribeMachine(options.dir);
  return json;
}

}  // namespace rhizome
