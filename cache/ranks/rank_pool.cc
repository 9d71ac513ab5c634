#include "cache/ranks/rank_pool.h"

#include <algorithm>
#include <memory>

#include "cache/policy/sweep.h"

namespace rhizome {
inline namespace internal {
RankFetches& RankFetches::operator+=(const RankFetches& more) {
  for (std::size_t r = 0; r < rows_of.size(); ++r) {
    rows_of[r] += more.rows_of[r];
    requests_to[r] += more.requests_to[r];
  }
  asking_sweeps += more.asking_sweeps;
  return *this;
}

RankPool::RankPool(const RankPoolOptions& options, std::span<const std::uint16_t> rank_of)
    : options_(options),
      ranks_{.rank_of = rank_of, .rank = options.rank},
      schedules_({.ranks = ranks_,
                  .local_cost = options.local_cost,
                  .remote_cost = options.remote_cost,
                  .keeper = options.keeper},
                 options.frame_count),
      frames_(options.frame_count, kNoRow) {
  if (options.prior == Prior::kUses) history_.emplace(rank_of.size());
}

/// Counts the fetches of a sweep over rows that are not in the pool.
void RankPool::Fetch(std::span<const CacheKey> rows, RankFetches& fetches) const {
  std::vector<std::uint64_t> asked(options_.ranks, 0);
  for (const CacheKey row : rows) {
    if (ranks_.IsOwn(row)) {
      ++fetches.rows_of[options_.rank];
      continue;
    }
    const std::uint16_t owner = ranks_.rank_of[static_cast<std::size_t>(row)];
    ++fetches.rows_of[owner];
    if (asked[owner]++ % options_.request_rows == 0) ++fetches.requests_to[owner];
  }
  fetches.asking_sweeps +=
      std::any_of(asked.begin(), asked.end(), [](auto rows) { return rows > 0; });
}

/// Puts the prefill into the frames, and returns the rows that were in no frame before.
std::vector<CacheKey> RankPool::Start(std::span<const PrefillEntry> prefill) {
  std::vector<CacheKey> there(frames_);
  std::sort(there.begin(), there.end());
  std::fill(frames_.begin(), frames_.end(), kNoRow);
  std::vector<CacheKey> missing;
  for (const auto& [row, frame] : prefill) {
    frames_[frame] = row;
    if (!std::binary_search(there.begin(), there.end(), row)) missing.push_back(row);
  }
  return missing;
}

Result<RankFetches> RankPool::Play(const Trace& superbatch, std::vector<RankFetches>* phases) {
  if (phases != nullptr) phases->clear();
  if (superbatch.steps() == 0) return RankFetches(options_.ranks);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Policy> policy,
                           schedules_.Make(superbatch, history_ ? &*history_ : nullptr));
  RankFetches fetches(options_.ranks);
  const std::vector<CacheKey> prefill = Start(policy->Prefill());
  for (std::size_t at = 0; at < prefill.size();) {
    const std::size_t piece = std::min<std::size_t>(options_.piece_rows, prefill.size() - at);
    Fetch(std::span(prefill).subspan(at, piece), fetches);
    at += piece;
  }
  RankFetches all = fetches;
  const auto end_phase = [&] {
    if (phases != nullptr) phases->push_back(fetches);
    fetches = RankFetches(options_.ranks);
  };
  end_phase();
  StepPlan plan;
  std::vector<CacheKey> misses;
  for (std::size_t s = 0; s < superbatch.steps(); ++s) {
    const std::span<const CacheKey> rows = superbatch.step(s);
    RHIZOME_RETURN_IF_ERROR(policy->Step(rows, plan));
    misses.clear();
    for (const std::uint32_t miss : plan.misses) misses.push_back(rows[miss]);
    Fetch(misses, fetches);
    all += fetches;
    end_phase();
    for (const StepPlan::Place& insert : plan.inserts) frames_[insert.frame] = rows[insert.request];
  }
  return all;
}

}  // namespace internal
}  // namespace rhizome
