#include "cache/feed/compute_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Mean of the values that are defined.
class DefinedMean {
 public:
  void Add(const std::optional<double>& value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  std::optional<double> Get() const {
    return count_ == 0 ? std::nullopt : std::optional<double>(sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

void Put(Metric metric, std::optional<double> value, const char* reason, SplitMetrics& metrics) {
  metrics.values.push_back({metric, value, value ? "" : reason});
}

/// Returns undefined metrics, with the reason, if there are no vertices or some scores are NaN;
/// otherwise nullopt.
std::optional<SplitMetrics> Uncountable(Task task, std::size_t vertices,
                                        std::span<const float> scores) {
  std::string reason = vertices == 0 ? "no vertex" : "";
  const std::size_t width = vertices == 0 ? 1 : scores.size() / vertices;
  std::uint64_t bad = 0;
  for (std::size_t v = 0; v < vertices; ++v) {
    const auto row = scores.subspan(v * width, width);
    bad += std::any_of(row.begin(), row.end(), [](float s) { return std::isnan(s); }) ? 1 : 0;
  }
  if (bad > 0) reason = fmt::format("the scores of {} vertices are not numbers", bad);
  if (reason.empty()) return std::nullopt;
  SplitMetrics metrics{.vertices = vertices};
  for (const Metric metric : MetricsOf(task)) metrics.values.push_back({metric, {}, reason});
  return metrics;
}

std::optional<double> MacroF1(const std::vector<ClassFigures>& classes) {
  DefinedMean mean;
  for (const ClassFigures& figures : classes) mean.Add(figures.f1());
  return mean.Get();
}

/// Returns the F1 over the decisions of all classes.
std::optional<double> MicroF1(const std::vector<ClassFigures>& classes) {
  ClassFigures all;
  for (const ClassFigures& figures : classes) {
    all.support += figures.support;
    all.answered += figures.answered;
    all.correct += figures.correct;
  }
  return all.f1();
}

struct Scored {
  float score;
  bool positive;
};

/// Returns the scores with a known label, in descending order.
std::vector<Scored> Ranked(std::span<const float> scores, std::span<const std::uint8_t> labels,
                           std::size_t columns, std::size_t column) {
  std::vector<Scored> ranked;
  for (std::size_t at = column; at < scores.size(); at += columns) {
    if (labels[at] != kMissingFlag || RHIZOME_MUTANT("missing labels are ranked"))
      ranked.push_back({scores[at], labels[at] != 0});
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return ranked;
}

/// Counts of the vertices with one score.
struct Tie {
  std::uint64_t positives = 0;
  std::uint64_t negatives = 0;
};

/// Calls use(tie) for each group of equal scores, in descending order.
template <typename Use>
void ForEachTie(const std::vector<Scored>& ranked, const Use& use) {
  for (std::size_t i = 0; i < ranked.size();) {
    Tie tie;
    const float score = ranked[i].score;
    for (; i < ranked.size() && ranked[i].score == score; ++i)
      ++(ranked[i].positive ? tie.positives : tie.negatives);
    use(tie);
  }
}

/// Error sums of one regression column.
struct ColumnErrors {
  std::uint64_t count = 0;
  double absolute = 0;
  double squared = 0;
  double target = 0;
  double spread = 0;  // sum of squared deviations of the targets
};

ColumnErrors ErrorsOf(std::span<const float> scores, std::span<const float> targets,
                      std::size_t columns, std::size_t column) {
  ColumnErrors errors;
  const auto each = [&](const auto& use) {
    for (std::size_t at = column; at < scores.size(); at += columns) {
      if (!std::isnan(targets[at])) use(double{scores[at]}, double{targets[at]});
    }
  };
  each([&](double score, double target) {
    ++errors.count;
    errors.absolute += std::abs(score - target);
    errors.squared += (score - target) * (score - target);
    errors.target += target;
  });
  const double mean = errors.target / static_cast<double>(errors.count);
  each([&](double, double target) { errors.spread += (target - mean) * (target - mean); });
  return errors;
}

Agreement AgreementOf(std::span<const float> scores, std::span<const float> targets,
                      std::size_t columns, std::size_t column) {
  constexpr std::size_t kBins = Agreement::kBins;
  Agreement made{.low = std::numeric_limits<double>::infinity(),
                 .high = -std::numeric_limits<double>::infinity(),
                 .counts = std::vector<std::uint64_t>(kBins * kBins)};
  const auto each = [&](const auto& use) {
    for (std::size_t at = column; at < scores.size(); at += columns) {
      if (!std::isnan(targets[at]) && std::isfinite(scores[at]))
        use(double{targets[at]}, double{scores[at]});
    }
  };
  each([&](double target, double score) {
    made.low = std::min({made.low, target, score});
    made.high = std::max({made.high, target, score});
  });
  if (!(made.high > made.low)) {  // at most one distinct value
    made.low = std::isfinite(made.low) ? made.low - 0.5 : 0;
    made.high = made.low + 1;
  }
  const auto bin = [&](double value) {
    const double share = (value - made.low) / (made.high - made.low);
    return std::min(static_cast<std::size_t>(share * kBins), kBins - 1);
  };
  each([&](double target, double score) { ++made.counts[bin(target) * kBins + bin(score)]; });
  return made;
}

}  // namespace

// The four functions below have the same steps: (1) return undefined metrics if there are no
// vertices or a score is NaN; (2) count decisions or sum errors for each class or column; (3)
// derive the metrics from these counts, in the order of MetricsOf(task).
SplitMetrics MulticlassMetrics(std::span<const float> answers, std::span<const std::int32_t> labels,
                               std::size_t classes) {
  if (auto none = Uncountable(Task::kMulticlass, labels.size(), answers)) return *none;
  SplitMetrics metrics{.vertices = labels.size()};
  metrics.classes.resize(classes);
  const bool confuse = classes <= SplitMetrics::kMaxConfusionClasses;
  metrics.confusion.resize(confuse ? classes * classes : 0);
  std::uint64_t correct = 0;
  for (std::size_t v = 0; v < labels.size(); ++v) {
    const auto label = static_cast<std::size_t>(labels[v]);
    const auto answer = static_cast<std::size_t>(answers[v]);
    ++metrics.classes[label].support;
    ++metrics.classes[answer].answered;
    if (label == answer) ++metrics.classes[label].correct;
    correct += label == answer ? 1 : 0;
    if (confuse) ++metrics.confusion[label * classes + answer];
  }
  const double accuracy = static_cast<double>(correct) / static_cast<double>(labels.size());
  Put(Metric::kAccuracy, accuracy, "", metrics);
  Put(Metric::kF1Micro, accuracy, "", metrics);  // same as accuracy: one answer per vertex
  Put(Metric::kF1Macro, MacroF1(metrics.classes), "", metrics);
  return metrics;
}

SplitMetrics BinaryMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels) {
  if (auto none = Uncountable(Task::kBinary, labels.size(), scores)) return *none;
  std::vector<float> answers;
  std::vector<std::int32_t> classes;
  for (std::size_t v = 0; v < labels.size(); ++v) {
    answers.push_back(scores[v] > 0 ? 1 : 0);
    classes.push_back(labels[v]);
  }
  SplitMetrics metrics = MulticlassMetrics(answers, classes, 2);
  Put(Metric::kRocAuc, RocAuc(scores, labels), "all vertices have one class", metrics);
  Put(Metric::kAveragePrecision, AveragePrecision(scores, labels), "no vertex has class 1",
      metrics);
  return metrics;
}

SplitMetrics MultilabelMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels,
                               std::size_t columns) {
  const std::size_t vertices = labels.size() / columns;
  if (auto none = Uncountable(Task::kMultilabel, vertices, scores)) return *none;
  SplitMetrics metrics{.vertices = vertices};
  metrics.classes.resize(columns);
  std::uint64_t labelled = 0, correct = 0;
  for (std::size_t v = 0; v < vertices; ++v) {
    bool known = false, right = true;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint8_t label = labels[v * columns + c];
      if (label == kMissingFlag) continue;
      const bool has = label != 0, answer = scores[v * columns + c] > 0;
      known = true;
      right = right && has == answer;
      metrics.classes[c].support += has ? 1 : 0;
      metrics.classes[c].answered += answer ? 1 : 0;
      metrics.classes[c].correct += has && answer ? 1 : 0;
    }
    labelled += known ? 1 : 0;
    correct += known && right ? 1 : 0;
  }
  DefinedMean auc, precision;
  for (std::size_t c = 0; c < columns; ++c) {
    auc.Add(RocAuc(scores, labels, columns, c));
    precision.Add(AveragePrecision(scores, labels, columns, c));
  }
  std::optional<double> accuracy;
  if (labelled > 0) accuracy = static_cast<double>(correct) / static_cast<double>(labelled);
  const char* const nothing = "no vertex has any label, and none is predicted";
  Put(Metric::kAccuracy, accuracy, "all labels are missing", metrics);
  Put(Metric::kF1Micro, MicroF1(metrics.classes), nothing, metrics);
  Put(Metric::kF1Macro, MacroF1(metrics.classes), nothing, metrics);
  Put(Metric::kRocAuc, auc.Get(), "no label has both vertices with it and vertices without it",
      metrics);
  Put(Metric::kAveragePrecision, precision.Get(), "no vertex has any label", metrics);
  return metrics;
}

SplitMetrics RegressionMetrics(std::span<const float> scores, std::span<const float> targets,
                               std::size_t columns) {
  const std::size_t vertices = targets.size() / columns;
  if (auto none = Uncountable(Task::kRegression, vertices, scores)) return *none;
  SplitMetrics metrics{.vertices = vertices};
  DefinedMean mae, rmse, r2;
  for (std::size_t c = 0; c < columns; ++c) {
    const ColumnErrors errors = ErrorsOf(scores, targets, columns, c);
    if (c < SplitMetrics::kMaxAgreements)
      metrics.agreements.push_back(AgreementOf(scores, targets, columns, c));
    ColumnFigures& figures = metrics.columns.emplace_back();
    figures.support = errors.count;
    if (errors.count == 0) continue;
    const auto count = static_cast<double>(errors.count);
    figures.mae = errors.absolute / count;
    figures.rmse = std::sqrt(errors.squared / count);
    if (errors.spread > 0) figures.r2 = 1 - errors.squared / errors.spread;
    mae.Add(figures.mae);
    rmse.Add(figures.rmse);
    r2.Add(figures.r2);
  }
  const char* const nothing = "all targets are missing";
  Put(Metric::kMae, mae.Get(), nothing, metrics);
  Put(Metric::kRmse, rmse.Get(), nothing, metrics);
  Put(Metric::kR2, r2.Get(), mae.Get() ? "all targets are equal" : nothing, metrics);
  return metrics;
}

std::optional<double> RocAuc(std::span<const float> scores, std::span<const std::uint8_t> labels,
                             std::size_t columns, std::size_t column) {
  // Counts each ordered pair twice, because a tie is half a pair.
  std::uint64_t ordered = 0, positives = 0, negatives = 0;
  ForEachTie(Ranked(scores, labels, columns, column), [&](const Tie& tie) {
    ordered += (2 * positives + (RHIZOME_MUTANT("ties are in order") ? 2 : 1) * tie.positives) *
               tie.negatives;
    positives += tie.positives;
    negatives += tie.negatives;
  });
  if (positives == 0 || negatives == 0) return std::nullopt;
  return static_cast<double>(ordered) /
         (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

std::optional<double> AveragePrecision(std::span<const float> scores,
                                       std::span<const std::uint8_t> labels, std::size_t columns,
                                       std::size_t column) {
  double sum = 0;
  std::uint64_t positives = 0, all = 0;
  ForEachTie(Ranked(scores, labels, columns, column), [&](const Tie& tie) {
    positives += tie.positives;
    all += tie.positives + tie.negatives;
    sum += static_cast<double>(tie.positives) * static_cast<double>(positives) /
           static_cast<double>(all);
  });
  if (positives == 0) return std::nullopt;
  return sum / static_cast<double>(positives);
}

}  // namespace internal
}  // namespace rhizome
