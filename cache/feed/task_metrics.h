#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The question that a network answers about a vertex.
enum class Task : std::uint8_t {
  kMulticlass,  ///< its class: one score for each class, cross entropy
  kMultilabel,  ///< which of several labels it has: one score (logit) for each, cross entropy
  kBinary,      ///< whether it is of class 1: one score (logit), cross entropy
  kRegression,  ///< numbers: one score for each, squared error
};

/// "multiclass", "multilabel", "binary", "regression"; nothing for another word.
std::string_view TaskName(Task task);
std::optional<Task> ParseTask(std::string_view name);

/// Figures of how well a network does its task. All but kMae and kRmse lie in [0, 1], or for kR2 in
/// (-inf, 1].
enum class Metric : std::uint8_t {
  kAccuracy,          ///< share of vertices of which everything is right
  kF1Micro,           ///< F1 of all decisions together
  kF1Macro,           ///< mean of the F1 of classes or labels
  kRocAuc,            ///< area under the ROC curve, equal scores counted half; mean over labels
  kAveragePrecision,  ///< area under precision and recall, as steps; mean over labels
  kMae,               ///< mean absolute error; mean over columns
  kRmse,              ///< root of the mean squared error; mean over columns
  kR2,                ///< coefficient of determination; mean over columns
  kLoss,              ///< what training minimises
};

/// "accuracy", "f1_micro", "f1_macro", "roc_auc", "average_precision", "mae", "rmse", "r2", "loss";
/// nothing for another word.
std::string_view MetricName(Metric metric);
std::optional<Metric> ParseMetric(std::string_view name);

/// Whether a larger value of it is better.
bool LargerIsBetter(Metric metric);

/// The metrics that a task has, in order, and the one that tells its best epoch: accuracy, micro
/// F1, ROC AUC, root mean squared error.
std::vector<Metric> MetricsOf(Task task);
Metric MainMetric(Task task);

/// One metric of one set of vertices. Never NaN: where it is undefined, `value` is absent and
/// `reason` says why.
struct MetricValue {
  Metric metric = Metric::kAccuracy;
  std::optional<double> value = {};
  std::string reason = {};
};

/// The decisions about one class or label.
struct ClassFigures {
  std::uint64_t support = 0;   ///< vertices that are of it
  std::uint64_t answered = 0;  ///< vertices that the network says are
  std::uint64_t correct = 0;   ///< vertices of both

  /// Absent where they divide by zero: nothing was answered; nothing is of it; neither.
  std::optional<double> precision() const;
  std::optional<double> recall() const;
  std::optional<double> f1() const;
};

/// The errors of one column of a regression; absent where they are undefined.
struct ColumnFigures {
  std::uint64_t support = 0;  ///< vertices with a target
  std::optional<double> mae = {}, rmse = {}, r2 = {};
};

/// How often a target and an answer came together: counts [kBins, kBins] over equal parts of
/// [low, high], row-major: row = the target, column = the answer. `high` is above `low`.
struct Agreement {
  static constexpr std::size_t kBins = 24;
  double low = 0;
  double high = 1;
  std::vector<std::uint64_t> counts = {};
};

/// How well a network does its task on a set of vertices. The definitions are those of
/// scikit-learn, with equal results to 1e-9: `accuracy_score` (of labels: all of a vertex),
/// `f1_score` (micro, macro), `roc_auc_score`, `average_precision_score`, `mean_absolute_error`,
/// `root_mean_squared_error`, `r2_score`. A missing label or number counts nowhere. Means over
/// labels leave out those that are undefined.
struct SplitMetrics {
  std::uint64_t vertices = 0;
  std::vector<MetricValue> values = {};    ///< of MetricsOf(task), in that order
  std::vector<ClassFigures> classes = {};  ///< by class or label; regression: empty

  /// [classes, classes], row-major: row = the class, column = the answer. Empty for tasks without
  /// classes, and for more than kMostConfusionClasses.
  std::vector<std::uint64_t> confusion = {};
  static constexpr std::size_t kMostConfusionClasses = 256;

  std::vector<ColumnFigures> columns = {};  ///< by column; of a regression

  /// By column, of at most kMostAgreements; of a regression.
  std::vector<Agreement> agreements = {};
  static constexpr std::size_t kMostAgreements = 16;

  /// A metric's value; nothing where it is undefined or not of the task.
  std::optional<double> Of(Metric metric) const;
};

}  // namespace rhizome
