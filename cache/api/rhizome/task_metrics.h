#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Sets of vertices in a split array, with their values.
enum class Split : std::uint8_t { kTrain = 0, kValid = 1, kTest = 2, kNone = 255 };

/// Kind of prediction for a vertex, with its scores and its loss.
enum class Task : std::uint8_t {
  kMulticlass,  ///< its class; one score per class, cross entropy
  kMultilabel,  ///< which of several labels it has; one score (logit) per label, cross entropy
  kBinary,      ///< whether it belongs to class 1; one score (logit), cross entropy
  kRegression,  ///< one or more numbers; one score per number, squared error
  kLink,        ///< which edges exist (LinkTrainOptions)
};

/// Names: "multiclass", "multilabel", "binary", "regression", "link". ParseTask returns nullopt for
/// any other word.
std::string_view TaskName(Task task);
std::optional<Task> ParseTask(std::string_view name);

/// Quality measures of predictions. All are in [0, 1] except kMae, kRmse, kLoss, and kR2, which is
/// in (-inf, 1].
enum class Metric : std::uint8_t {
  kAccuracy,          ///< share of vertices with all labels correct
  kF1Micro,           ///< F1 over all decisions
  kF1Macro,           ///< mean F1 of classes or labels
  kRocAuc,            ///< area under the ROC curve, equal scores count half; mean over labels
  kAveragePrecision,  ///< area under the precision-recall curve, as steps; mean over labels
  kMae,               ///< mean absolute error; mean over columns
  kRmse,              ///< root mean squared error; mean over columns
  kR2,                ///< coefficient of determination; mean over columns
  kMrrSampled,        ///< mean of 1 / rank of the true end of an edge, among a sample of vertices
  kLoss,              ///< value that training minimises
};

/// Names: "accuracy", "f1_micro", "f1_macro", "roc_auc", "average_precision", "mae", "rmse", "r2",
/// "mrr_sampled", "loss". ParseMetric returns nullopt for any other word.
std::string_view MetricName(Metric metric);
std::optional<Metric> ParseMetric(std::string_view name);

/// Returns whether larger values of the metric are better.
bool LargerIsBetter(Metric metric);

/// Returns the metrics of a task, in order, and the one that selects the best epoch: accuracy,
/// micro F1, ROC AUC, root mean squared error or sampled MRR.
std::vector<Metric> MetricsOf(Task task);
Metric MainMetric(Task task);

/// One metric of one set of vertices. Never NaN: if it is undefined, `value` is absent and `reason`
/// says why.
struct MetricValue {
  Metric metric = Metric::kAccuracy;
  std::optional<double> value = {};
  std::string reason = {};
};

/// Decision counts of one class or label.
struct ClassFigures {
  std::uint64_t support = 0;   ///< vertices that have it
  std::uint64_t answered = 0;  ///< vertices for which the model predicts it
  std::uint64_t correct = 0;   ///< vertices that have it and for which it is predicted

  /// Absent if the denominator is zero: precision if nothing was predicted, recall if the class has
  /// no vertices, F1 if both.
  std::optional<double> precision() const;
  std::optional<double> recall() const;
  std::optional<double> f1() const;
};

/// Errors of one regression column; absent if undefined.
struct ColumnFigures {
  std::uint64_t support = 0;  ///< vertices with a target
  std::optional<double> mae = {}, rmse = {}, r2 = {};
};

/// Two-dimensional histogram of targets and predictions: counts [kBins, kBins] over equal parts of
/// [low, high], row-major; the row is the target, the column is the prediction. `high` is above
/// `low`.
struct Agreement {
  static constexpr std::size_t kBins = 24;
  double low = 0;
  double high = 1;
  std::vector<std::uint64_t> counts = {};
};

/// Prediction quality on a set of vertices. The definitions follow scikit-learn, with results equal
/// to 1e-9: `accuracy_score` (multilabel: all labels of a vertex must match), `f1_score` (micro,
/// macro), `roc_auc_score`, `average_precision_score`, `mean_absolute_error`,
/// `root_mean_squared_error`, `r2_score`. Missing labels and numbers are ignored. Means over labels
/// exclude undefined ones.
struct SplitMetrics {
  std::uint64_t vertices = 0;
  std::vector<MetricValue> values = {};    ///< one for each entry of MetricsOf(task), in that order
  std::vector<ClassFigures> classes = {};  ///< by class or label; empty for regression

  /// Confusion matrix [classes, classes], row-major; the row is the label, the column is the
  /// prediction. Empty for tasks without classes, and for more than kMaxConfusionClasses classes.
  std::vector<std::uint64_t> confusion = {};
  static constexpr std::size_t kMaxConfusionClasses = 256;

  std::vector<ColumnFigures> columns = {};  ///< regression only, by column

  /// Regression only: one per column, for up to kMaxAgreements columns.
  std::vector<Agreement> agreements = {};
  static constexpr std::size_t kMaxAgreements = 16;

  /// Returns the value of a metric; nullopt if it is undefined or not part of the task.
  std::optional<double> Of(Metric metric) const;
};

}  // namespace rhizome
