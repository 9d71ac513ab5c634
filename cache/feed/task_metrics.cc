#include "rhizome/task_metrics.h"

#include "storage/base/name_table.h"

namespace rhizome {
namespace {

constexpr NameTable<Task, 5> kTaskNames = {{
    {Task::kMulticlass, "multiclass"},
    {Task::kMultilabel, "multilabel"},
    {Task::kBinary, "binary"},
    {Task::kRegression, "regression"},
    {Task::kLink, "link"},
}};

constexpr NameTable<Metric, 10> kMetricNames = {{
    {Metric::kAccuracy, "accuracy"},
    {Metric::kF1Micro, "f1_micro"},
    {Metric::kF1Macro, "f1_macro"},
    {Metric::kRocAuc, "roc_auc"},
    {Metric::kAveragePrecision, "average_precision"},
    {Metric::kMae, "mae"},
    {Metric::kRmse, "rmse"},
    {Metric::kR2, "r2"},
    {Metric::kMrrSampled, "mrr_sampled"},
    {Metric::kLoss, "loss"},
}};

std::optional<double> Ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string_view TaskName(Task task) { return NameOf(kTaskNames, task); }
std::optional<Task> ParseTask(std::string_view name) { return KindOf(kTaskNames, name); }
std::string_view MetricName(Metric metric) { return NameOf(kMetricNames, metric); }
std::optional<Metric> ParseMetric(std::string_view name) { return KindOf(kMetricNames, name); }

bool LargerIsBetter(Metric metric) {
  return metric != Metric::kMae && metric != Metric::kRmse && metric != Metric::kLoss;
}

std::vector<Metric> MetricsOf(Task task) {
  if (task == Task::kLink) return {Metric::kMrrSampled};
  std::vector<Metric> metrics = {Metric::kAccuracy, Metric::kF1Micro, Metric::kF1Macro};
  if (task == Task::kRegression) metrics = {Metric::kMae, Metric::kRmse, Metric::kR2};
  if (task == Task::kBinary || task == Task::kMultilabel) {
    metrics.push_back(Metric::kRocAuc);
    metrics.push_back(Metric::kAveragePrecision);
  }
  return metrics;
}

Metric MainMetric(Task task) {
  if (task == Task::kMultilabel) return Metric::kF1Micro;
  if (task == Task::kBinary) return Metric::kRocAuc;
  if (task == Task::kLink) return Metric::kMrrSampled;
  return task == Task::kRegression ? Metric::kRmse : Metric::kAccuracy;
}

std::optional<double> ClassFigures::precision() const { return Ratio(correct, answered); }
std::optional<double> ClassFigures::recall() const { return Ratio(correct, support); }
std::optional<double> ClassFigures::f1() const { return Ratio(2 * correct, support + answered); }

std::optional<double> SplitMetrics::Of(Metric metric) const {
  for (const MetricValue& value : values) {
    if (value.metric == metric) return value.value;
  }
  return std::nullopt;
}

}  // namespace rhizome
