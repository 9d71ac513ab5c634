#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/cache/prior.h"
#include "rhizome/cache/rank_schedule.h"
#include "rhizome/cache/row_ranks.h"
#include "rhizome/cache/schedule_history.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The rows that a rank fetches, by the rank whose home they are of (its own: from its disk or its
/// delta), and the requests that it sends for them: for each piece of what is read before a
/// superbatch, and for each of its minibatches, one to each other rank whose rows are needed, or
/// several where they are many.
struct RankFetches {
  std::vector<std::uint64_t> rows_of;      ///< by rank
  std::vector<std::uint64_t> requests_to;  ///< by rank; to itself none
  std::uint64_t asking_sweeps = 0;         ///< pieces and minibatches for which others are asked

  explicit RankFetches(std::uint32_t ranks) : rows_of(ranks, 0), requests_to(ranks, 0) {}
  RankFetches& operator+=(const RankFetches& more);
};

struct RankPoolOptions {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t frame_count = 0;
  Prior prior = Prior::kUses;

  /// The cost of a row from the rank's own disk and of one from another rank, above 0.
  double local_cost = 1;
  double remote_cost = 1;
  RemoteKeeperMaker keeper = {};  ///< RowsOverRanks::keeper

  /// Rows that are read at once before a superbatch (PrefillPiece), and rows of a request
  /// (row_messages.h), at most; at least 1.
  std::uint64_t piece_rows = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t request_rows = std::numeric_limits<std::uint64_t>::max();
};

/// Replays the pool of rows of one rank, superbatch after superbatch: one schedule for rows of its
/// own disk and of other ranks, with what each costs, unless a keeper decides about those.
/// Threads: one at a time. Ownership: `rank_of` must outlive it.
class RankPool {
 public:
  /// `rank_of`: by row, the rank that has it; or kEveryRank.
  RankPool(const RankPoolOptions& options, std::span<const std::uint16_t> rank_of);

  /// Plays a superbatch, and returns what is fetched for it: exactly what a FeedPipeline over ranks
  /// fetches. One without minibatches is none, and changes nothing. `phases`: null, or set to what
  /// is fetched before the first minibatch, then for each. Errors: those of MakeBeladySchedule.
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

}  // namespace rhizome::inline internal
