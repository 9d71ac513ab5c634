#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/feed/feature_decoder.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/policy/schedule_history.h"
#include "cache/pool/rank_schedule.h"
#include "rhizome/feature_cache.h"
#include "rhizome/loader.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The rows of one array in a FeedPipeline: its cache, and the schedules of the cache.
/// Threads: MakeSchedule on the thread that schedules; SetStarved and Cancel on any thread; the
/// other functions on the reading thread.
class ArrayFeed {
 public:
  /// Opens the cache of `array` with the memory of `share`. `staging_bytes`: its read buffers.
  /// Errors: as FeatureCache::Open; kInvalidArgument, the dtype is not supported.
  static Result<std::unique_ptr<ArrayFeed>> Open(const GraphSnapshot& graph,
                                                 const FeedPipelineOptions& options,
                                                 const std::string& array, const InputShare& share,
                                                 std::size_t staging_bytes);

  const std::string& array() const { return array_; }
  FeatureCache& cache() { return *cache_; }
  const FeatureCache& cache() const { return *cache_; }

  /// Makes the schedule of a superbatch. `in_turns`: the pool loses its rows before.
  Result<std::unique_ptr<Policy>> MakeSchedule(const Trace& trace, bool in_turns);

  /// Holds the distinct rows of the next step. Row i belongs to row_of[i], or to rows[i] if
  /// `row_of` is absent.
  Result<FeatureRows> Hold(std::span<const Row> rows,
                           std::optional<std::vector<std::uint32_t>> row_of);

  /// Returns the reads since the last call.
  RowReads TakeReads();

 private:
  ArrayFeed(const FeedPipelineOptions& options, std::string array,
            std::unique_ptr<FeatureCache> cache, const FeatureDecoder& decoder);

  const std::string array_;
  const PolicyKind policy_;
  const FeatureDecoder decoder_;
  const std::unique_ptr<FeatureCache> cache_;
  std::optional<ScheduleHistory> history_;
  std::optional<RankSchedules> over_ranks_;
  RowReads taken_;  // returned by TakeReads so far
};

}  // namespace internal
}  // namespace rhizome
