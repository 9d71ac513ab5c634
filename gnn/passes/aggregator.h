#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/block_stager.h"
#include "cache/blocks/chunk_feed.h"
#include "gnn/models/window_lists.h"
#include "gnn/passes/attention_aggregation.h"

namespace rhizome {
inline namespace internal {

/// Factors of an aggregated sum, [rows] each. An empty span means all ones, except for `own`.
struct GatherFactors {
  std::span<const float> source;  ///< of each row as a source
  std::span<const float> target;  ///< of the sum of each row
  std::span<const float> own;     ///< of each row in its own sum; empty: it does not join it
};

/// Kinds of aggregation over the rows of a list.
enum class AggregationKind : std::uint8_t {
  kSum,
  kMax,  ///< [maxima | winners]: winners are the rows that attain them, as bits (max_aggregation.h)
  kMaxGradient,          ///< over rows [gradients | winners]: the gradients of the winners
  kAttend,               ///< attention-weighted sums of prepared rows (GatherHeads)
  kAttendGradient,       ///< gradients of prepared rows as sources
  kAttendQueryGradient,  ///< gradients of queries, for GATv2
};

/// Returns whether an aggregation begins with the targets' own rows.
constexpr bool Attends(AggregationKind by) {
  return by == AggregationKind::kAttend || by == AggregationKind::kAttendGradient ||
         by == AggregationKind::kAttendQueryGradient;
}

/// Returns the number of columns of an aggregation of `width` columns.
constexpr std::size_t GatheredColumns(AggregationKind by, std::size_t width,
                                      const GatherHeads& heads) {
  switch (by) {
    case AggregationKind::kMax:
      return 2 * width;
    case AggregationKind::kAttend:
      return heads.gathered();
    case AggregationKind::kAttendGradient:
      return heads.returned();
    case AggregationKind::kAttendQueryGradient:
      return heads.width;
    default:
      return width;
  }
}

/// The lists and rows of an aggregation, its kind, and its division into blocks and windows.
struct GatherShape {
  BlockPlannerOptions planner = {};  ///< for attention it stages own rows, too
  std::vector<Block> blocks;         ///< blocks of all rows, in order
  std::size_t dim = 0;               ///< columns of the source rows
  std::size_t width = 0;             ///< the first columns of these, which are aggregated
  AggregationKind by = AggregationKind::kSum;
  GatherHeads heads = {};  ///< for attention

  std::size_t columns() const { return GatheredColumns(by, width, heads); }

  /// Returns the number of columns kept for a target until it is complete. The first columns are
  /// the result.
  std::size_t state_columns() const {
    switch (by) {
      case AggregationKind::kAttend:
        return AttentionState(heads);
      case AggregationKind::kAttendGradient:
        return AttentionGradientState(heads);
      case AggregationKind::kAttendQueryGradient:
        return QueryGradientState(heads);
      default:
        return columns();
    }
  }
};

/// Aggregates source rows over neighbour lists, for all targets in order. AggregationKind::kSum
/// computes
///   out[t] = own[t] * x[t] + target[t] * (sum over j in the list of t: source[j] * weight * x[j])
/// where weight is the weight of the edge. Other kinds ignore factors and weights. The sums of a
/// block of targets stay in memory while the source rows are staged, window after window. One
/// thread computes the sum of a target, in ascending order of source rows, so that its bits depend
/// neither on blocks nor on windows.
/// Threads: one at a time; works on the compute threads.
/// Ownership: borrows all arguments.
class PassAggregator {
 public:
  /// `feed` delivers chunks of the source array. Errors: errors of BlockPlanner; kOutOfMemory.
  static Result<std::unique_ptr<PassAggregator>> Create(const GraphSnapshot& graph,
                                                        const GatherShape& shape,
                                                        const GatherFactors& factors,
                                                        ChunkFeed& feed);

  /// Aggregates the block of row `first`, unless that is done. `first` must be in the current block
  /// or be the first row of the next one. Errors: errors of the feed and of the lists.
  Status Prepare(std::uint64_t first) {
    return first >= static_cast<std::uint64_t>(block_.end) ? SumBlock() : Status::Ok();
  }

  /// Writes the results of rows [first, first + count), which follow the rows of the previous call,
  /// to `out` [count, GatherShape::columns]. `own`: the same rows of the source array, `own_stride`
  /// floats apart; null if GatherFactors::own is empty. Errors: errors of the feed and of the
  /// lists.
  Status Take(std::uint64_t first, std::uint64_t count, const float* own, std::size_t own_stride,
              float* out);

 private:
  PassAggregator(const GatherShape& shape, const GatherFactors& factors)
      : shape_(shape), factors_(factors) {}
  Status SumBlock();
  void AddWindow(const StagedWindow& window, WindowLists& lists, const TargetRange& range);
  void AddSums(const StagedWindow& window, const TileLists& walked, const TargetRange& range);
  void AddOther(const StagedWindow& window, const TileLists& walked, const TargetRange& range);
  void AddAttending(const GatherWindow& window, const GatherNumbers& numbers, float* state) const;
  Status BeginAttention(StagedWindow& window);
  void BeginTargets(const float* rows, const std::uint32_t* slots, const TargetRange& targets);
  void Finish(std::uint64_t first, std::uint64_t count, const float* own, std::size_t own_stride,
              float* out) const;

  const GatherShape shape_;
  const GatherFactors factors_;
  std::unique_ptr<BlockStager> stager_;
  std::size_t next_block_ = 0;
  Block block_;              // the block in sums_
  std::vector<float> sums_;  // [rows of the largest block, state columns]
};

}  // namespace internal
}  // namespace rhizome
