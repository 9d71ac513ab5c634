#include "tools/import/learning_flags.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "tools/cli/text.h"

// Flags of `train` by group (task, optimiser, schedule, stopping), then the reports of metrics and
// seeds as JSON and as text.

namespace rhizome {
namespace {

constexpr const char* kSets[] = {"train", "valid", "test"};

Json NullOr(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json ClassesJson(const std::vector<ClassFigures>& classes) {
  Json json = Json::array();
  for (const ClassFigures& figures : classes) {
    json.push_back({{"support", figures.support},
                    {"answered", figures.answered},
                    {"precision", NullOr(figures.precision())},
                    {"recall", NullOr(figures.recall())},
                    {"f1", NullOr(figures.f1())}});
  }
  return json;
}

Json ColumnsJson(const std::vector<ColumnFigures>& columns) {
  Json json = Json::array();
  for (const ColumnFigures& figures : columns) {
    json.push_back({{"support", figures.support},
                    {"mae", NullOr(figures.mae)},
                    {"rmse", NullOr(figures.rmse)},
                    {"r2", NullOr(figures.r2)}});
  }
  return json;
}

Json SplitMetricsJson(const std::optional<SplitMetrics>& metrics) {
  if (!metrics) return {};
  Json json = {{"vertices", metrics->vertices}};
  Json undefined = Json::object();
  for (const MetricValue& value : metrics->values) {
    const std::string name(MetricName(value.metric));
    json[name] = NullOr(value.value);
    if (!value.value) undefined[name] = value.reason;
  }
  if (!undefined.empty()) json["undefined"] = std::move(undefined);
  if (!metrics->classes.empty()) json["classes"] = ClassesJson(metrics->classes);
  if (!metrics->columns.empty()) json["columns"] = ColumnsJson(metrics->columns);
  const std::size_t classes = metrics->classes.size();
  if (metrics->confusion.empty()) return json;
  Json rows = Json::array();
  for (std::size_t c = 0; c < classes; ++c) {
    const auto first = metrics->confusion.begin() + static_cast<std::ptrdiff_t>(c * classes);
    rows.push_back(std::vector<std::uint64_t>(first, first + static_cast<std::ptrdiff_t>(classes)));
  }
  json["confusion"] = std::move(rows);
  return json;
}

bool IsError(const std::string& metric) {
  return metric == "mae" || metric == "rmse" || metric == "r2" || metric == "loss";
}

CLI::Validator NotNegative() {
  return {[](const std::string& given) {
            double number = 0;
            const bool fine = CLI::detail::lexical_cast(given, number) && number >= 0;
            return fine ? std::string() : "'" + given + "' is not a number from 0 on";
          },
          ""};
}

void AddTaskFlags(CLI::App& verb, TrainOptions& options) {
  verb.add_option_function<std::string>(
          "--task",
          [&options](const std::string& given) {
            options.task = ParseTask(given);
            if (!options.task && given != "auto") {
              throw CLI::ValidationError("--task",
                                         "'" + given +
                                             "' is not one of "
                                             "auto|multiclass|multilabel|binary|regression");
            }
          },
          "What is learnt of a vertex; auto: int labels are multiclass, uint8 of several columns "
          "multilabel (255: missing), float32 regression (NaN: missing)")
      ->type_name("auto|multiclass|multilabel|binary|regression")
      ->default_str("auto");
  verb.add_option("--class-weights", options.loss.class_weights,
                  "balanced: rare classes weigh more; or a text file with a number for each class")
      ->type_name("balanced|F");
  verb.add_option("--label-smoothing", options.loss.label_smoothing,
                  "Share of a target that is spread over all classes")
      ->check(CLI::Range(0.0, 0.99))
      ->type_name("X")
      ->capture_default_str();
}

void AddOptimizerFlags(CLI::App& verb, TrainOptions& options) {
  OptimizerChoice& optimizer = options.optimizer;
  AddChoice<OptimizerKind>(verb, "--optimizer", optimizer.kind,
                           {{"adam", OptimizerKind::kAdam},
                            {"adamw", OptimizerKind::kAdamW},
                            {"sgd", OptimizerKind::kSgd},
                            {"adagrad", OptimizerKind::kAdagrad}},
                           "How weights follow gradients");
  verb.add_option("--momentum", optimizer.momentum, "Of --optimizer sgd")
      ->check(CLI::Range(0.0, 0.9999))
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--lr", options.learning_rate, "Learning rate")
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--weight-decay", options.weight_decay,
                  "L2 penalty (adamw: decay) of matrices; biases and norms have none")
      ->type_name("X")
      ->capture_default_str();
  AddChoice<bool>(verb, "--decay-layers", optimizer.decay_first_layer_only,
                  {{"all", false}, {"first", true}}, "The layers whose weights decay");
  verb.add_option("--clip-norm", optimizer.clip_norm,
                  "Scale gradients of a larger norm down to it; 0: never")
      ->check(NotNegative())
      ->type_name("X")
      ->capture_default_str();
}

void AddScheduleFlags(CLI::App& verb, TrainOptions& options) {
  ScheduleOptions& schedule = options.schedule;
  AddChoice<ScheduleKind>(verb, "--schedule", schedule.kind,
                          {{"constant", ScheduleKind::kConstant},
                           {"step", ScheduleKind::kStep},
                           {"cosine", ScheduleKind::kCosine},
                           {"linear", ScheduleKind::kLinear},
                           {"plateau", ScheduleKind::kPlateau}},
                          "How the learning rate goes over the epochs");
  verb.add_option("--warmup", schedule.warmup, "Epochs in which the rate rises to --lr")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--decay-every", schedule.every,
                  "Epochs between two steps (default: a third of all), or without a better one on "
                  "a plateau (10)")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N");
  verb.add_option("--decay-factor", schedule.factor, "Of a step, or of a plateau")
      ->check(CLI::Range(1e-6, 0.999999))
      ->type_name("X")
      ->capture_default_str();
}

void AddStoppingFlags(CLI::App& verb, TrainOptions& options) {
  verb.add_option("--eval-every", options.eval_every,
                  "Measure the validation set every so many epochs, and after the last")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option_function<std::string>(
          "--eval-fanout",
          [&options](const std::string& given) {
            const auto fanouts = ParseFanouts(given);
            if (!fanouts) {
              throw CLI::ValidationError("--eval-fanout",
                                         "'" + given + "' is not all or a list such as 10,10");
            }
            options.eval_fanouts = *fanouts;
          },
          "Neighbours drawn in each layer where the validation set is measured; default: as in "
          "training")
      ->type_name("all|N,N,...");
  verb.add_option_function<std::string>(
          "--monitor",
          [&options](const std::string& given) {
            options.monitor = ParseMetric(given);
            if (!options.monitor)
              throw CLI::ValidationError("--monitor", "'" + given + "' is no metric");
          },
          "The validation metric that tells the best epoch: accuracy, f1_micro, f1_macro, roc_auc, "
          "average_precision, mae, rmse, r2 or loss; default: accuracy, f1_micro (multilabel), "
          "roc_auc (binary), rmse (regression)")
      ->type_name("METRIC");
  verb.add_option("--patience", options.patience,
                  "Stop after so many epochs without a better one; default: never")
      ->check(CLI::Range(1U, 1000000U))
      ->type_name("N");
  verb.add_option("--min-delta", options.min_delta, "What makes an epoch better, for --patience")
      ->check(NotNegative())
      ->type_name("X")
      ->capture_default_str();
  verb.add_option("--seed", options.seed, "Same seed, same model (bitwise with --threads 1)")
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seeds", options.seeds,
                  "Train with so many seeds, one after another: mean and deviation; --out gets the "
                  "best one's model")
      ->check(CLI::Range(1U, 100000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option_function<std::string>(
          "--init", [&options](const std::string& given) { options.init = given; },
          "Begin with the weights of this model file, of a model of equal shape")
      ->type_name("F");
}

}  // namespace

void AddLearningFlags(CLI::App& verb, TrainOptions& options) {
  AddTaskFlags(verb, options);
  AddOptimizerFlags(verb, options);
  AddScheduleFlags(verb, options);
  AddStoppingFlags(verb, options);
}

Json TaskMetricsJson(const TaskMetrics& metrics) {
  return {{"train", SplitMetricsJson(metrics.train)},
          {"valid", SplitMetricsJson(metrics.valid)},
          {"test", SplitMetricsJson(metrics.test)}};
}

Json MetricValuesJson(const std::vector<MetricValue>& values) {
  Json json;
  for (const MetricValue& value : values)
    json[std::string(MetricName(value.metric))] = NullOr(value.value);
  return json;
}

void AddLearningReport(const TrainReport& report, Json& json) {
  json["task"] = TaskName(report.task);
  json["monitor"] = MetricName(report.monitor);
  json["metrics"] = TaskMetricsJson(report.metrics);
  json["stopped_early"] = report.stopped_early;
  json["warnings"] = report.warnings;
  Json rates = Json::array();
  for (const EpochReport& epoch : report.epochs) rates.push_back(epoch.learning_rate);
  json["learning_rates"] = std::move(rates);
  Json seeds = Json::array();
  for (const SeedReport& seed : report.seeds) {
    seeds.push_back({{"seed", seed.seed},
                     {"best_epoch", seed.best_epoch},
                     {"best_value", NullOr(seed.best_value)},
                     {"epochs", seed.epochs},
                     {"stopped_early", seed.stopped_early},
                     {"metrics", TaskMetricsJson(seed.metrics)}});
  }
  json["seeds"] = std::move(seeds);
  json["best_seed"] = report.best_seed;
  json["mean"] = Json::object();
  json["deviation"] = Json::object();
  for (const MetricSpread& spread : report.spread) {
    const std::string name(MetricName(spread.metric));
    json["mean"][name] = spread.mean;
    json["deviation"][name] = spread.deviation;
  }
}

std::string MetricText(const std::string& name, const Json& value) {
  if (value.is_null()) return "none";
  const double number = value.get<double>();
  return IsError(name) ? fmt::format("{:.4g}", number) : Percent(number);
}

std::string DescribeMetrics(const Json& fields) {
  const std::optional<Task> task = ParseTask(fields["task"].get<std::string>());
  const Json& metrics = fields["metrics"];
  TextTable table({1, 2, 3});
  table.Add({"", "train", "valid", "test"});
  bool any = false;
  for (const Metric metric : MetricsOf(*task)) {
    const std::string name(MetricName(metric));
    std::vector<std::string> row = {name};
    for (const char* set : kSets) {
      const Json& of_set = metrics[set];
      any = any || !of_set.is_null();
      row.push_back(of_set.is_null() ? "none" : MetricText(name, of_set[name]));
    }
    table.Add(std::move(row));
  }
  return any ? table.ToString() : "";
}

std::string DescribeSeeds(const Json& fields) {
  const Json& seeds = fields["seeds"];
  if (seeds.size() < 2) return "";
  const std::string monitor = fields["monitor"];
  TextTable table({0, 1, 2, 3, 4});
  std::vector<std::string> names;
  for (const auto& [name, value] : fields["mean"].items()) names.push_back(name);
  std::vector<std::string> header = {"seed", "best epoch", "valid " + monitor};
  const char* const set = seeds.front()["metrics"]["test"].is_null() ? "valid" : "test";
  for (const std::string& name : names) header.push_back(fmt::format("{} {}", set, name));
  table.Add(header);
  for (const Json& seed : seeds) {
    const Json& measured = seed["metrics"][set];
    std::vector<std::string> row = {std::to_string(seed["seed"].get<std::uint64_t>()),
                                    std::to_string(seed["best_epoch"].get<std::uint32_t>()),
                                    MetricText(monitor, seed["best_value"])};
    for (const std::string& name : names) row.push_back(MetricText(name, measured[name]));
    table.Add(std::move(row));
  }
  std::string text = table.ToString();
  for (const std::string& name : names) {
    text += fmt::format("{} {} over {} seeds: {} ± {}\n", set, name, seeds.size(),
                        MetricText(name, fields["mean"][name]),
                        MetricText(name, fields["deviation"][name]));
  }
  return text;
}

}  // namespace rhizome
