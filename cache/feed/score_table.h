#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/feed/task_labels.h"
#include "cache/feed/vertex_score_sink.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Stores the scores of the vertices of some sets, as needed for metrics: the class with the
/// highest score (the first of equal ones), or the scores themselves. The metrics do not depend on
/// the order in which scores arrive. Memory: 4 bytes per vertex of the sets, plus 4 bytes for its
/// class or for each of its scores; thus 8 bytes for multiclass and binary tasks.
/// Threads: Take as in VertexScoreSink; the other functions only after all scores have arrived.
/// Ownership: `labels` must outlive it.
class ScoreTable final : public VertexScoreSink {
 public:
  /// Creates a table for the vertices of the set `only`; nullopt: of all three sets.
  ScoreTable(const Labels& labels, std::optional<Split> only);

  /// Returns the bytes of a table of `vertices` vertices, including the temporary memory of
  /// Metrics.
  static std::uint64_t BytesFor(const Labels& labels, std::uint64_t vertices);

  /// Ignores rows that are in none of the sets.
  void Take(std::span<const Row> rows, std::span<const float> scores) override;

  /// Returns the metrics of a set. A vertex whose scores did not arrive counts as one with NaN
  /// scores.
  SplitMetrics Metrics(Split set) const;

  /// The stored numbers in ascending order of rows, to save and restore the table.
  std::span<float> kept() { return kept_; }
  std::span<const float> kept() const { return kept_; }

  /// Removes all scores.
  void Clear();

 private:
  std::size_t width() const { return WidthOf(labels_); }
  static std::size_t WidthOf(const Labels& labels);

  const Labels& labels_;
  std::vector<std::uint32_t> rows_;  // ascending
  std::vector<float> kept_;          // [rows, width]
};

}  // namespace internal
}  // namespace rhizome
