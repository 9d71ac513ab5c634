#include "tools/import/learning_report.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "tools/cli/text.h"

// The reports of metrics and seeds as JSON and as text.

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

}  // namespace

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
  if (!report.class_names.empty()) json["class_names"] = report.class_names;
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
