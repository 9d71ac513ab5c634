#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/export.h"
#include "rhizome/task_metrics.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Label value that marks an unknown label.
inline constexpr std::uint8_t kMissingFlag = 255;

/// Metrics of n vertices, one function for each task; SplitMetrics defines them. If `scores`
/// contains NaN, all metrics are absent and the reason states the number of such vertices. The
/// results are bit-for-bit reproducible for equal arguments.
///
/// Multiclass: `answers` [n] are the classes with the highest score, `labels` [n] in [0, classes).
SplitMetrics MulticlassMetrics(std::span<const float> answers, std::span<const std::int32_t> labels,
                               std::size_t classes);

/// Binary: `scores` [n] are logits; `labels` [n] are 0 or 1.
SplitMetrics BinaryMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels);

/// Multilabel: `scores` [n, columns] are logits; `labels` [n, columns] are 0, 1 or kMissingFlag.
SplitMetrics MultilabelMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels,
                               std::size_t columns);

/// Regression: `scores` and `targets` are [n, columns]; a NaN target is missing.
SplitMetrics RegressionMetrics(std::span<const float> scores, std::span<const float> targets,
                               std::size_t columns);

/// Returns the area under the ROC curve of column `column` of arrays [n, columns]: the share of
/// pairs of a positive and a negative vertex whose scores are in the right order; pairs of equal
/// scores count half (Mann and Whitney 1947). Exact, because pairs are counted in integers. Returns
/// nullopt if there are no positive or no negative vertices.
std::optional<double> RocAuc(std::span<const float> scores, std::span<const std::uint8_t> labels,
                             std::size_t columns = 1, std::size_t column = 0);

/// Returns the average precision: the sum over falling thresholds of precision times the gain in
/// recall. Vertices of equal scores share one threshold. Returns nullopt if no vertex has the
/// label.
std::optional<double> AveragePrecision(std::span<const float> scores,
                                       std::span<const std::uint8_t> labels,
                                       std::size_t columns = 1, std::size_t column = 0);

}  // namespace internal
}  // namespace rhizome
