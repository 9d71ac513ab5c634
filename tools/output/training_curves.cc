#include "tools/output/training_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

namespace rhizome {
namespace {

using ValueOf = std::function<std::optional<double>(const EpochReport&)>;
using Style = ChartLine::Style;

const SeedReport& BestSeed(const TrainReport& report) {
  const auto found =
      std::find_if(report.seeds.begin(), report.seeds.end(),
                   [&](const SeedReport& seed) { return seed.seed == report.best_seed; });
  return found == report.seeds.end() ? report.seeds.front() : *found;
}

std::optional<double> Find(const std::vector<MetricValue>& values, Metric metric) {
  for (const MetricValue& one : values)
    if (one.metric == metric) return one.value;
  return std::nullopt;
}

ValueOf TrainMetric(Metric metric) {
  return [metric](const EpochReport& epoch) { return Find(epoch.train_metrics, metric); };
}

ValueOf ValidMetric(Metric metric) {
  return [metric](const EpochReport& epoch) { return Find(epoch.valid_metrics, metric); };
}

/// Adds a line for the best seed and one for each other seed.
void AddLines(const TrainReport& report, const std::string& name, Style style, double scale,
              const ValueOf& value, Chart& chart) {
  const SeedReport& best = BestSeed(report);
  for (const SeedReport& seed : report.seeds) {
    ChartLine line{.name = name, .style = style, .other = &seed != &best};
    for (const EpochReport& epoch : seed.course) {
      const std::optional<double> one = value(epoch);
      line.values.push_back(one ? std::optional(*one * scale) : std::nullopt);
    }
    chart.lines.push_back(std::move(line));
  }
}

/// Returns a chart of byte counts, in a unit that suits the largest.
Chart BytesChart(const TrainReport& report, const std::string& title,
                 const std::function<std::uint64_t(const EpochReport&)>& bytes) {
  std::uint64_t most = 0;
  for (const EpochReport& epoch : BestSeed(report).course) most = std::max(most, bytes(epoch));
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scale = 1;
  while (unit < 4 && static_cast<double>(most) * scale >= 1024) {
    scale /= 1024;
    ++unit;
  }
  Chart chart{.title = title, .unit = units[unit], .from_zero = true};
  ChartLine line;
  for (const EpochReport& epoch : BestSeed(report).course)
    line.values.emplace_back(static_cast<double>(bytes(epoch)) * scale);
  chart.lines.push_back(std::move(line));
  return chart;
}

std::string Field(const std::optional<double>& value) {
  return value ? fmt::format(",{}", *value) : ",";
}

}  // namespace

bool IsShare(Metric metric) {
  return metric != Metric::kMae && metric != Metric::kRmse && metric != Metric::kR2 &&
         metric != Metric::kLoss;
}

std::vector<Chart> LearningCharts(const TrainReport& report) {
  const auto best = BestSeed(report).best_epoch;
  std::vector<Chart> charts;
  Chart loss{.title = "loss", .marked = best};
  AddLines(
      report, "train", Style::kFirst, 1, [](const EpochReport& e) { return e.loss; }, loss);
  AddLines(
      report, "validation", Style::kSecond, 1, [](const EpochReport& e) { return e.valid_loss; },
      loss);
  charts.push_back(std::move(loss));
  for (const Metric metric : MetricsOf(report.task)) {
    const bool share = IsShare(metric);
    const double scale = share ? 100 : 1;
    Chart chart{.title = std::string(MetricName(metric)), .unit = share ? "%" : "", .marked = best};
    AddLines(report, "train", Style::kFirst, scale, TrainMetric(metric), chart);
    AddLines(report, "validation", Style::kSecond, scale, ValidMetric(metric), chart);
    charts.push_back(std::move(chart));
  }
  Chart rate{.title = "learning rate", .from_zero = true};
  AddLines(
      report, "", Style::kFirst, 1, [](const EpochReport& e) { return e.learning_rate; }, rate);
  charts.push_back(std::move(rate));
  return charts;
}

std::vector<Chart> CostCharts(const TrainReport& report) {
  Chart seconds{.title = "time of an epoch", .unit = "s", .from_zero = true};
  ChartLine line;
  for (const EpochReport& epoch : BestSeed(report).course) line.values.emplace_back(epoch.seconds);
  seconds.lines.push_back(std::move(line));
  return {BytesChart(report, "memory of the process at the end of an epoch",
                     [](const EpochReport& e) { return e.resident_bytes; }),
          BytesChart(report, "read from disk in an epoch",
                     [](const EpochReport& e) { return e.bytes_read; }),
          std::move(seconds)};
}

std::string CurvesCsv(const TrainReport& report) {
  const std::vector<Metric> metrics = MetricsOf(report.task);
  std::string text = "seed,epoch,best,learning_rate,loss,valid_loss";
  for (const char* set : {"train", "valid"})
    for (const Metric metric : metrics) text += fmt::format(",{}_{}", set, MetricName(metric));
  text += ",seconds,rows_requested,rows_read,bytes_read,hit_rate,resident_bytes\n";
  for (const SeedReport& seed : report.seeds) {
    std::uint32_t number = 0;
    for (const EpochReport& epoch : seed.course) {
      ++number;
      text += fmt::format("{},{},{},{},{}", seed.seed, number, number == seed.best_epoch ? 1 : 0,
                          epoch.learning_rate, epoch.loss);
      text += Field(epoch.valid_loss);
      for (const Metric metric : metrics) text += Field(Find(epoch.train_metrics, metric));
      for (const Metric metric : metrics) text += Field(Find(epoch.valid_metrics, metric));
      text +=
          fmt::format(",{},{},{},{},{},{}\n", epoch.seconds, epoch.rows_requested, epoch.rows_read,
                      epoch.bytes_read, epoch.hit_rate(), epoch.resident_bytes);
    }
  }
  return text;
}

}  // namespace rhizome
