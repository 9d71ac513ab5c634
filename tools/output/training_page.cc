#include "tools/output/training_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "tools/cli/text.h"
#include "tools/output/markup.h"
#include "tools/output/svg_chart.h"
#include "tools/output/training_curves.h"

namespace rhizome {
namespace {

constexpr std::size_t kMaxTableClasses = 30;  // largest confusion matrix shown with its numbers

std::string Figure(Metric metric, const std::optional<double>& value) {
  if (!value) return "none";
  return IsShare(metric) ? Percent(*value) : fmt::format("{:.4g}", *value);
}

std::string Share(const std::optional<double>& value) { return value ? Percent(*value) : "none"; }
std::string Number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "none";
}

std::string Paragraph(std::string_view text, std::string_view kind = "") {
  return kind.empty() ? fmt::format("<p>{}</p>\n", Escaped(text))
                      : fmt::format("<p class=\"{}\">{}</p>\n", kind, Escaped(text));
}

std::string Heading(std::string_view text) { return fmt::format("<h2>{}</h2>\n", Escaped(text)); }

std::string List(const std::vector<std::string>& lines) {
  std::string list = "<ul>\n";
  for (const std::string& line : lines) list += fmt::format("<li>{}</li>\n", Escaped(line));
  return list + "</ul>\n";
}

/// The set for which details are shown: the test set if measured, else the validation set, else the
/// training set.
struct MeasuredSet {
  const SplitMetrics* metrics = nullptr;  // null: no set was measured
  const char* name = "";
};
MeasuredSet Measured(const TaskMetrics& metrics) {
  if (metrics.test) return {&*metrics.test, "test set"};
  if (metrics.valid) return {&*metrics.valid, "validation set"};
  if (metrics.train) return {&*metrics.train, "training set"};
  return {};
}

std::string DescribeResult(const TrainReport& report, const TrainingPageFacts& facts) {
  std::string page;
  if (!facts.stopped.empty()) {
    page += Paragraph("This training stopped before its end: " + facts.stopped +
                          ". This page shows the completed epochs.",
                      "stopped");
  }
  std::string text = fmt::format(
      "Task {}, model {}, store {}. Of seed {}, epoch {} of {} was kept, chosen by {} on the "
      "validation set",
      TaskName(report.task), report.network.kind, facts.store, report.best_seed, report.best_epoch,
      report.epochs.size(), MetricName(report.monitor));
  text +=
      report.stopped_early ? "; training ended early, because later epochs were not better." : ".";
  page += Paragraph(text);
  if (!report.model.empty()) page += Paragraph("The weights are in " + report.model + ".");
  const TaskMetrics& metrics = report.metrics;
  if (Measured(metrics).metrics == nullptr) {
    if (report.link_test) return page;
    return page + Paragraph("The kept weights were not evaluated with all neighbours.", "soft");
  }
  HtmlTable table({1, 2, 3});
  table.Head({"with all neighbours", "train", "validation", "test"});
  for (const Metric metric : MetricsOf(report.task)) {
    std::vector<std::string> row = {std::string(MetricName(metric))};
    for (const auto* set : {&metrics.train, &metrics.valid, &metrics.test})
      row.push_back(*set ? Figure(metric, (*set)->Of(metric)) : "no vertex");
    table.Add(row);
  }
  page += table.ToString("metrics");
  if (report.majority_accuracy)
    page += Paragraph("Accuracy of always predicting the most common class of the training set: " +
                          Percent(*report.majority_accuracy) + " on the test set.",
                      "soft");
  return page;
}

/// Describes the ranks of the test edges of a training on links.
std::string DescribeLinkTest(const LinkEvaluation& found) {
  HtmlTable table({1, 2, 3, 4, 5, 6});
  table.Head({"ends", "ranks", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank"});
  const auto add = [&](const std::string& name, const LinkRanks& ranks) {
    const LinkFigures& figures = ranks.realistic;
    table.Add({name, WithCommas(ranks.ranks), fmt::format("{:.4f}", figures.mrr),
               Percent(figures.hits_at_1), Percent(figures.hits_at_3), Percent(figures.hits_at_10),
               fmt::format("{:.1f}", figures.mean_rank)});
  };
  add("all", found.all);
  if (found.unseen_ends != 0) add("without unseen ends", found.without_unseen);
  add("destinations", found.dst);
  add("sources", found.src);
  if (found.by_type.size() > 1)
    for (const auto& [type, ranks] : found.by_type) add(found.edge_types[type], ranks);
  std::string text = fmt::format(
      "Each end of {} test edges is ranked among all vertices of its type; ends of other known "
      "edges do not count, and equal scores count half.",
      WithCommas(found.edges));
  if (found.leaked_edges != 0)
    text += fmt::format(" {} of these edges are in the store.", WithCommas(found.leaked_edges));
  return Heading("The test edges") + table.ToString("links") + Paragraph(text, "soft");
}

std::string DrawAll(const std::vector<Chart>& charts) {
  std::string drawn = "<div class=\"charts\">\n";
  for (const Chart& chart : charts) drawn += DrawChart(chart);
  return drawn + "</div>\n";
}

std::string DescribeCurves(const TrainReport& report) {
  std::string page = Heading("Curves");
  page += DrawAll(LearningCharts(report));
  std::string text =
      "Metrics of the training set are measured on its minibatches during training, with dropout; "
      "metrics of the validation set after each epoch. The dotted line marks the epoch that was "
      "kept.";
  if (report.seeds.size() > 1) text += " Thin lines are the other seeds.";
  if (report.epochs.size() > kMaxChartPoints)
    text +=
        fmt::format(" Of {} epochs, at most {} are drawn.", report.epochs.size(), kMaxChartPoints);
  return page + Paragraph(text, "soft");
}

/// Returns how the page shows a class: by its name or number.
std::string ShownAs(const std::vector<std::string>& names, std::size_t label) {
  return label < names.size() ? names[label] : std::to_string(label);
}

std::string ConfusionTable(const SplitMetrics& metrics, const std::vector<std::string>& names) {
  const std::size_t classes = metrics.classes.size();
  std::vector<std::size_t> right(classes + 1);
  for (std::size_t c = 0; c <= classes; ++c) right[c] = c;
  HtmlTable table(right);
  std::vector<std::string> head = {"class / prediction"};
  for (std::size_t c = 0; c < classes; ++c) head.push_back(ShownAs(names, c));
  table.Head(head);
  for (std::size_t r = 0; r < classes; ++r) {
    std::vector<std::string> row = {ShownAs(names, r)}, styles = {""};
    const double sum = std::max<double>(static_cast<double>(metrics.classes[r].support), 1);
    for (std::size_t c = 0; c < classes; ++c) {
      const std::uint64_t count = metrics.confusion[r * classes + c];
      row.push_back(WithCommas(count));
      const double share = static_cast<double>(count) / sum;
      styles.push_back(
          count == 0 ? ""
                     : fmt::format("background: rgb(var(--heat) / {:.2f})", 0.08 + .47 * share));
    }
    table.Add(row, styles);
  }
  return table.ToString("confusion");
}

std::string DescribeConfusion(const SplitMetrics& metrics, const std::vector<std::string>& names) {
  const std::size_t classes = metrics.classes.size();
  if (metrics.confusion.empty()) {
    // multilabel tasks have no confusion matrix
    if (classes <= SplitMetrics::kMaxConfusionClasses) return "";
    return Paragraph(fmt::format("{} classes are too many for a confusion matrix.", classes),
                     "soft");
  }
  std::string page = Paragraph("Rows are true classes, columns are predicted classes.", "soft");
  if (classes <= kMaxTableClasses) return page + ConfusionTable(metrics, names);
  return page + "<figure>" +
         DrawHeatMap({.rows = classes,
                      .columns = classes,
                      .counts = metrics.confusion,
                      .title = "confusion",
                      .row_title = "class",
                      .column_title = "prediction",
                      .first_label = ShownAs(names, 0),
                      .last_label = ShownAs(names, classes - 1)}) +
         "</figure>\n";
}

std::string ClassTable(Task task, const SplitMetrics& metrics,
                       const std::vector<std::string>& names) {
  HtmlTable table({0, 1, 2, 3, 4, 5});
  table.Head({task == Task::kMultilabel ? "label" : "class", "precision", "recall", "F1", "support",
              "predicted"});
  for (std::size_t c = 0; c < metrics.classes.size(); ++c) {
    const ClassFigures& figures = metrics.classes[c];
    table.Add({ShownAs(names, c), Share(figures.precision()), Share(figures.recall()),
               Share(figures.f1()), WithCommas(figures.support), WithCommas(figures.answered)});
  }
  return table.ToString("classes");
}

std::string DescribeColumns(const SplitMetrics& metrics) {
  HtmlTable table({0, 1, 2, 3, 4});
  table.Head({"column", "MAE", "RMSE", "R²", "support"});
  for (std::size_t c = 0; c < metrics.columns.size(); ++c) {
    const ColumnFigures& figures = metrics.columns[c];
    table.Add({std::to_string(c), Number(figures.mae), Number(figures.rmse), Number(figures.r2),
               WithCommas(figures.support)});
  }
  std::string page = table.ToString("columns") + "<div class=\"charts\">\n";
  for (std::size_t c = 0; c < metrics.agreements.size(); ++c) {
    const Agreement& agreement = metrics.agreements[c];
    page += DrawHeatMap({.rows = Agreement::kBins,
                         .columns = Agreement::kBins,
                         .counts = agreement.counts,
                         .title = fmt::format("column {}: target and prediction", c),
                         .row_title = "target",
                         .column_title = "prediction",
                         .first_label = fmt::format("{:.4g}", agreement.low),
                         .last_label = fmt::format("{:.4g}", agreement.high),
                         .upwards = true});
  }
  page += "</div>\n" + Paragraph(
                           "Each row is the distribution of the predictions for targets in one "
                           "interval; correct predictions are on the rising diagonal.",
                           "soft");
  if (metrics.columns.size() > metrics.agreements.size())
    page += Paragraph(fmt::format("The first {} of {} columns are drawn.",
                                  metrics.agreements.size(), metrics.columns.size()),
                      "soft");
  return page;
}

std::string DescribeDetails(const TrainReport& report) {
  const MeasuredSet set = Measured(report.metrics);
  if (set.metrics == nullptr) return "";
  const bool regression = report.task == Task::kRegression;
  std::string page =
      Heading(fmt::format("The {}, by {}", set.name, regression ? "column" : "class"));
  if (set.metrics->classes.empty() && set.metrics->columns.empty()) {
    return page +
           Paragraph(set.metrics->values.front().reason.empty()
                         ? "There are no classes to report."
                         : "No metric can be computed: " + set.metrics->values.front().reason,
                     "soft");
  }
  if (regression) return page + DescribeColumns(*set.metrics);
  return page + DescribeConfusion(*set.metrics, report.class_names) +
         ClassTable(report.task, *set.metrics, report.class_names);
}

std::string DescribeSeedsOf(const TrainReport& report) {
  std::string page = Heading("Seeds");
  const std::vector<Metric> metrics = MetricsOf(report.task);
  HtmlTable table({0, 1, 2, 3, 4, 5, 6, 7, 8});
  const bool tested = Measured(report.seeds.front().metrics).metrics != nullptr;
  const std::string set = tested ? Measured(report.seeds.front().metrics).name : "";
  std::vector<std::string> head = {"seed", "epochs", "kept",
                                   fmt::format("validation {}", MetricName(report.monitor))};
  if (tested)
    for (const Metric metric : metrics)
      head.push_back(fmt::format("{} {}", set, MetricName(metric)));
  table.Head(head);
  for (const SeedReport& seed : report.seeds) {
    std::vector<std::string> row = {std::to_string(seed.seed), std::to_string(seed.epochs),
                                    std::to_string(seed.best_epoch),
                                    Figure(report.monitor, seed.best_value)};
    const SplitMetrics* const measured = Measured(seed.metrics).metrics;
    for (std::size_t m = 0; tested && m < metrics.size(); ++m)
      row.push_back(measured ? Figure(metrics[m], measured->Of(metrics[m])) : "none");
    table.Add(row);
  }
  const auto spread_row = [&](const char* name, const auto& value) {
    std::vector<std::string> row = {name, "", "", ""};
    for (const Metric metric : metrics) {
      const auto found =
          std::find_if(report.spread.begin(), report.spread.end(),
                       [&](const MetricSpread& spread) { return spread.metric == metric; });
      row.push_back(found == report.spread.end() ? "none" : Figure(metric, value(*found)));
    }
    table.Add(row);
  };
  if (tested && report.seeds.size() > 1) {
    spread_row("mean", [](const MetricSpread& spread) { return spread.mean; });
    spread_row("deviation", [](const MetricSpread& spread) { return spread.deviation; });
  }
  return page + table.ToString("seeds");
}

std::string DescribeNetwork(const TrainReport& report) {
  const ModelSpec& network = report.network;
  HtmlTable options;
  options.Head({"network", network.kind});
  options.Add({"layers", std::to_string(network.layers)});
  options.Add({"hidden", std::to_string(network.hidden)});
  options.Add({"dropout", fmt::format("{}", network.dropout)});
  options.Add({"normalize-features", network.normalize_features ? "true" : "false"});
  options.Add({"no-edges", network.no_edges ? "true" : "false"});
  for (const auto& [name, value] : network.options) options.Add({name, value});
  HtmlTable weights({1, 2});
  weights.Head({"tensor", "shape", "numbers"});
  std::uint64_t all = 0;
  for (const WeightReport& weight : report.weights) {
    std::uint64_t numbers = 1;
    for (const std::int64_t extent : weight.shape) numbers *= static_cast<std::uint64_t>(extent);
    all += numbers;
    weights.Add(
        {weight.name, fmt::format("{}", fmt::join(weight.shape, " × ")), WithCommas(numbers)});
  }
  weights.Add({"all", "", WithCommas(all)});
  return Heading("Network") + options.ToString("network") + weights.ToString("weights");
}

std::string DescribeCosts(const TrainReport& report) {
  std::string page = Heading("Memory, disk and time");
  page += DrawAll(CostCharts(report));
  HtmlTable table({1});
  table.Add({"peak memory of the process", HumanBytes(report.peak_memory_bytes)});
  table.Add({"memory of the process before the job", HumanBytes(report.base_memory_bytes)});
  table.Add({"graph and labels", HumanBytes(report.memory.held)});
  table.Add({"minibatches in flight", HumanBytes(report.memory.working)});
  table.Add({fmt::format("schedules (superbatches of {} minibatches)", report.superbatch),
             HumanBytes(report.memory.schedules)});
  table.Add({"row cache", HumanBytes(report.memory.cache)});
  table.Add({"neighbour list cache", HumanBytes(report.memory.neighbor_cache)});
  std::uint64_t bytes = 0, rows = 0, read = 0;
  for (const EpochReport& epoch : report.epochs) {
    bytes += epoch.bytes_read;
    rows += epoch.rows_requested;
    read += epoch.rows_read;
  }
  table.Add({"read from disk in all epochs", HumanBytes(bytes)});
  table.Add({"rows read in all epochs", WithCommas(read)});
  table.Add({"rows requested in all epochs", WithCommas(rows)});
  return page + table.ToString("memory");
}

std::string DescribeOptions(const TrainingPageFacts& facts) {
  HtmlTable table;
  table.Head({"option", "value"});
  for (const auto& [name, value] : facts.options) table.Add({name, value});
  return Heading("Options of the run") + table.ToString("options");
}

std::string DescribeIgnored(const TrainReport& report) {
  std::string page = Heading("Parts of the store that were not used");
  page += report.ignored.empty() ? Paragraph("None.") : List(report.ignored);
  if (report.warnings.empty()) return page;
  return page + Heading("Warnings") + List(report.warnings);
}

}  // namespace

std::string TrainingPage(const TrainReport& report, const TrainingPageFacts& facts) {
  const std::string title = fmt::format("Training of {} on {}", report.network.kind, facts.store);
  return HtmlPage(title,
                  fmt::format("<h1>{}</h1>\n", Escaped(title)) + DescribeResult(report, facts) +
                      (report.link_test ? DescribeLinkTest(*report.link_test) : "") +
                      DescribeCurves(report) + DescribeDetails(report) + DescribeSeedsOf(report) +
                      DescribeNetwork(report) + DescribeCosts(report) + DescribeIgnored(report) +
                      DescribeOptions(facts));
}

}  // namespace rhizome
