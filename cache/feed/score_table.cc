#include "cache/feed/score_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cache/feed/compute_metrics.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

/// Returns the first class with the highest score, which a float represents exactly; NaN if any
/// score is NaN.
float BestClass(std::span<const float> scores) {
  std::size_t best = 0;
  for (std::size_t c = 0; c < scores.size(); ++c) {
    if (std::isnan(scores[c])) return kNoScore;
    if (scores[c] > scores[best]) best = c;
  }
  return static_cast<float>(best);
}

}  // namespace

ScoreTable::ScoreTable(const Labels& labels, std::optional<Split> only) : labels_(labels) {
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    const Split set = labels.split[row];
    if (only ? set == *only : set != Split::kNone) rows_.push_back(static_cast<std::uint32_t>(row));
  }
  kept_.assign(rows_.size() * width(), kNoScore);
}

std::size_t ScoreTable::WidthOf(const Labels& labels) {
  return labels.task == Task::kMulticlass ? 1 : static_cast<std::size_t>(labels.outputs());
}

std::uint64_t ScoreTable::BytesFor(const Labels& labels, std::uint64_t vertices) {
  const std::uint64_t kept = sizeof(std::uint32_t) + WidthOf(labels) * sizeof(float);
  // Copies of the scores and labels of a set, and of one column for sorting.
  const std::uint64_t counting = WidthOf(labels) * 2 * sizeof(float) + 2 * sizeof(float);
  return vertices * (kept + counting);
}

void ScoreTable::Take(std::span<const Row> rows, std::span<const float> scores) {
  const auto outputs = static_cast<std::size_t>(labels_.outputs());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::uint32_t>(rows[i]);
    const auto found = std::lower_bound(rows_.begin(), rows_.end(), row);
    if (found == rows_.end() || *found != row) continue;
    const std::span<const float> of_row = scores.subspan(i * outputs, outputs);
    float* const into = kept_.data() + static_cast<std::size_t>(found - rows_.begin()) * width();
    if (labels_.task == Task::kMulticlass) {
      *into = BestClass(of_row);
    } else {
      std::copy(of_row.begin(), of_row.end(), into);
    }
  }
}

SplitMetrics ScoreTable::Metrics(Split set) const {
  std::vector<float> scores, values;
  std::vector<std::int32_t> classes;
  std::vector<std::uint8_t> flags;
  const auto append = [](const auto& from, std::size_t row, std::size_t columns, auto& to) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(row * columns);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(columns));
  };
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t row = rows_[i];
    if (labels_.split[row] != set) continue;
    append(kept_, i, width(), scores);
    if (!labels_.flags.empty()) append(labels_.flags, row, labels_.columns, flags);
    if (!labels_.values.empty()) append(labels_.values, row, labels_.columns, values);
    if (labels_.label.empty()) continue;
    classes.push_back(labels_.label[row]);
    flags.push_back(static_cast<std::uint8_t>(labels_.label[row]));
  }
  switch (labels_.task) {
    case Task::kMultilabel:
      return MultilabelMetrics(scores, flags, labels_.columns);
    case Task::kBinary:
      return BinaryMetrics(scores, flags);
    case Task::kRegression:
      return RegressionMetrics(scores, values, labels_.columns);
    default:
      return MulticlassMetrics(scores, classes, static_cast<std::size_t>(labels_.classes));
  }
}

void ScoreTable::Clear() { std::fill(kept_.begin(), kept_.end(), kNoScore); }

}  // namespace internal
}  // namespace rhizome
