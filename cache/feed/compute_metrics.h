#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/cache/task_metrics.h"

namespace rhizome::inline internal {

/// The label that says that it is not known.
inline constexpr std::uint8_t kMissingFlag = 255;

/// Metrics of n vertices, by task; SplitMetrics has the definitions. `scores` may hold NaN: all
/// metrics are then absent, with the number of such vertices. The results depend on the arguments
/// alone, bit by bit.
///
/// Multiclass: `answers` [n] are the classes with the highest score, `labels` [n] in [0, classes).
SplitMetrics MulticlassMetrics(std::span<const float> answers, std::span<const std::int32_t> labels,
                               std::size_t classes);

/// Binary: `scores` [n] are logits; `labels` [n] are 0 or 1.
SplitMetrics BinaryMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels);

/// Multilabel: `scores` [n, columns] are logits; `labels` [n, columns] are 0, 1 or kMissingFlag.
SplitMetrics MultilabelMetrics(std::span<const float> scores, std::span<const std::uint8_t> labels,
                               std::size_t columns);

/// Regression: both [n, columns]; a target that is NaN is missing.
SplitMetrics RegressionMetrics(std::span<const float> scores, std::span<const float> targets,
                               std::size_t columns);

/// The area under the ROC curve of column `column` of arrays [n, columns]: the share of pairs of a
/// vertex with the label and one without whose scores are in that order, pairs of equal scores
/// counted half (Mann and Whitney 1947). Exact: counted in integers. Nothing where one side is
/// empty.
std::optional<double> RocAuc(std::span<const float> scores, std::span<const std::uint8_t> labels,
                             std::size_t columns = 1, std::size_t column = 0);

/// The sum over falling thresholds of precision times the gain in recall; vertices of equal scores
/// are one threshold. Nothing where no vertex has the label.
std::optional<double> AveragePrecision(std::span<const float> scores,
                                       std::span<const std::uint8_t> labels,
                                       std::size_t columns = 1, std::size_t column = 0);

}  // namespace rhizome::inline internal
