#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/task_labels.h"
#include "rhizome/cache/vertex_score_sink.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Keeps what metrics need of the scores of the vertices of some sets: the class with the highest
/// score (of equal ones the first), or the scores themselves. The metrics depend on the scores
/// alone, not on the order in which they come. Memory: 4 bytes for each vertex of the sets, and 4
/// for its class or each of its scores: 8 for classes and binary tasks.
/// Threads: as VertexScoreSink; the other functions once all scores are in.
/// Ownership: `labels` must outlive it.
class ScoreTable final : public VertexScoreSink {
 public:
  /// `only`: the one set whose vertices are kept; nothing: those of all three.
  ScoreTable(const Labels& labels, std::optional<Split> only);

  /// Returns the bytes that a table of so many vertices takes, with those that Metrics takes while
  /// it counts.
  static std::uint64_t BytesFor(const Labels& labels, std::uint64_t vertices);

  /// Rows that are in none of the sets are left out.
  void Take(std::span<const Row> rows, std::span<const float> scores) override;

  /// A vertex whose scores did not come counts as one whose scores are not numbers.
  SplitMetrics Metrics(Split set) const;

  /// The numbers that are kept, by ascending row: to save, and to go on with later.
  std::span<float> kept() { return kept_; }
  std::span<const float> kept() const { return kept_; }

  /// Forgets all scores.
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
