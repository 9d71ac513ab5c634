#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cache/policy/schedule_history.h"
#include "cache/pool/rank_schedule.h"
#include "cache/pool/row_ranks.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The rows that a rank fetches, by the rank that owns them (own rows come from the local disk or
/// the delta), and its requests. For each piece of a prefill and for each minibatch, it sends one
/// request to each other rank whose rows are needed, or several if there are many rows.
struct RankFetches {
  std::vector<std::uint64_t> rows_of;      ///< by rank
  std::vector<std::uint64_t> requests_to;  ///< by rank; 0 for the rank itself
  std::uint64_t asking_sweeps = 0;         ///< pieces and minibatches that need rows of other ranks

  explicit RankFetches(std::uint32_t ranks) : rows_of(ranks, 0), requests_to(ranks, 0) {}
  RankFetches& operator+=(const RankFetches& more);
};

struct RankPoolOptions {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t frame_count = 0;
  Prior prior = Prior::kUses;

  /// Costs of a row from the local disk and of a row from another rank; positive.
  double local_cost = 1;
  double remote_cost = 1;
  RemoteCachePolicyFactory keeper = {};  ///< as RowsOverRanks

  /// Max rows per prefill piece (PrefillPiece) and per request (row_messages.h); at least 1.
  std::uint64_t piece_rows = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t request_rows = std::numeric_limits<std::uint64_t>::max();
};

/// Replays the row pool of one rank, superbatch by superbatch. One schedule manages rows of the
/// local disk and of other ranks, weighted by their costs, unless a remote cache policy manages the
/// latter.
/// Threads: one at a time. Ownership: `rank_of` must outlive it.
class RankPool {
 public:
  /// `rank_of`: the rank that owns each row, or kEveryRank.
  RankPool(const RankPoolOptions& options, std::span<const std::uint16_t> rank_of);

  /// Plays a superbatch and returns its fetches, which are exactly the fetches of a FeedPipeline in
  /// distributed training. A superbatch without minibatches has no effect. `phases`, if not null,
  /// is set to the fetches before the first minibatch, followed by the fetches of each minibatch.
  /// Errors: as MakeBeladySchedule.
  Result<RankFetches> Play(const Trace& superbatch, std::vector<RankFetches>* phases = nullptr);

 private:
  void Fetch(std::span<const CacheKey> rows, RankFetches& fetches) const;
  std::vector<CacheKey> Start(std::span<const PrefillEntry> prefill);

  const RankPoolOptions options_;
  const RowRanks ranks_;
  std::optional<ScheduleHistory> history_;
  RankSchedules schedules_;
  std::vector<CacheKey> frames_;
};

}  // namespace internal
}  // namespace rhizome
