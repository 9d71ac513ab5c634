#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/block_stager.h"
#include "rhizome/cache/chunk_feed.h"
#include "rhizome/gnn/gather_attention.h"
#include "rhizome/gnn/window_lists.h"

namespace rhizome::inline internal {

/// The factors of a gathered sum, [rows] each; an empty one means all ones.
struct GatherFactors {
  std::span<const float> source;  ///< of each row where it is read
  std::span<const float> target;  ///< of each row's sum
  std::span<const float> own;     ///< of a row's own row, if that joins its sum
};

/// A way to make one row of the rows of a list.
enum class GatherBy : std::uint8_t {
  kSum,
  kMax,          ///< [maxima | winners]: the rows that attain them, as bits; see gather_max.h
  kMaxGradient,  ///< of rows [gradients | winners]: what comes back to the winners
  kAttend,       ///< of prepared rows: sums weighted by attention (GatherHeads)
  kAttendGradient,
  kAttendQueryGradient,  ///< of what targets ask, where that is whole rows
};

/// Whether a gathering begins with the targets' own rows.
constexpr bool Attends(GatherBy by) {
  return by == GatherBy::kAttend || by == GatherBy::kAttendGradient ||
         by == GatherBy::kAttendQueryGradient;
}

/// Returns the columns of what is gathered of `width` columns.
constexpr std::size_t GatheredColumns(GatherBy by, std::size_t width, const GatherHeads& heads) {
  switch (by) {
    case GatherBy::kMax:
      return 2 * width;
    case GatherBy::kAttend:
      return heads.gathered();
    case GatherBy::kAttendGradient:
      return heads.returned();
    case GatherBy::kAttendQueryGradient:
      return heads.width;
    default:
      return width;
  }
}

/// The lists and rows of a gathering, and how it is cut.
struct GatherShape {
  BlockPlannerOptions planner = {};  ///< OwnWindows of none: own rows are the caller's
  std::vector<Block> blocks;         ///< of all rows in order
  std::size_t dim = 0;               ///< columns of the rows that are read
  std::size_t width = 0;             ///< of these, the first that are gathered
  GatherBy by = GatherBy::kSum;
  GatherHeads heads = {};  ///< of attention

  std::size_t columns() const { return GatheredColumns(by, width, heads); }

  /// Columns of what is kept of a target until it is complete: first those of the result.
  std::size_t state_columns() const {
    switch (by) {
      case GatherBy::kAttend:
        return AttentionState(heads);
      case GatherBy::kAttendGradient:
        return AttentionGradientState(heads);
      case GatherBy::kAttendQueryGradient:
        return QueryGradientState(heads);
      default:
        return columns();
    }
  }
};

/// Sums rows over lists for all rows in order: out[t] = own[t] * x[t] + target[t] * sum of
/// source[j] * weight of the edge * x[j] over the list of t; or takes maxima, or
/// attends, or gathers what comes back of these, without factors and weights. The sums of a block
/// stay in memory while the source goes by, window after window; a sum is taken by one thread in
/// ascending order of rows, so that its bits depend neither on blocks nor on windows. Threads: one
/// at a time; works on the compute threads. Ownership: borrows all that it is given.
class Gatherer {
 public:
  /// `feed` delivers chunks of the array that is read. Errors: those of BlockPlanner; kOutOfMemory.
  static Result<std::unique_ptr<Gatherer>> Create(const GraphSnapshot& graph,
                                                  const GatherShape& shape,
                                                  const GatherFactors& factors, ChunkFeed& feed);

  /// Sums up the block of row `first`, which is the next that is taken, if it has not been yet.
  /// Errors: those of the feed and of the lists.
  Status Prepare(std::uint64_t first) {
    return first >= static_cast<std::uint64_t>(block_.end) ? SumBlock() : Status::Ok();
  }

  /// Writes the sums of rows [first, first + count), which follow those of the call before, to
  /// `out` [count, GatherShape::columns]. `own`: the same rows of the array that is read,
  /// `own_stride` floats apart; null if GatherFactors::own is empty. Errors: those of the feed and
  /// of the lists.
  Status Take(std::uint64_t first, std::uint64_t count, const float* own, std::size_t own_stride,
              float* out);

 private:
  Gatherer(const GatherShape& shape, const GatherFactors& factors)
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
  Block block_;              // whose sums are in sums_
  std::vector<float> sums_;  // [rows of the largest block, state columns]
};

}  // namespace rhizome::inline internal
