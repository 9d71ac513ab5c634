#include "rhizome/cache/rank_pool.h"

#include <algorithm>
#include <memory>

#include "rhizome/cache/belady_schedule.h"
#include "rhizome/cache/sweep.h"

namespace rhizome::inline internal {
namespace {

constexpr std::uint8_t kLocal = 0;
constexpr std::uint8_t kRemote = 1;

}  // namespace

RankFetches& RankFetches::operator+=(const RankFetches& more) {
  for (std::size_t r = 0; r < rows_of.size(); ++r) {
    rows_of[r] += more.rows_of[r];
    requests_to[r] += more.requests_to[r];
  }
  return *this;
}

RankPool::RankPool(const RankPoolOptions& options, std::span<const std::uint16_t> rank_of)
    : options_(options), rank_of_(rank_of), frames_(options.frame_count, kNoRow) {
  if (options.prior == Prior::kUses) history_.emplace(rank_of.size());
}

/// Books a sweep over rows that are not in the pool.
void RankPool::Fetch(std::span<const CacheKey> rows, RankFetches& fetches) const {
  std::vector<bool> asked(options_.ranks, false);
  for (const CacheKey row : rows) {
    const std::uint16_t owner = rank_of_[static_cast<std::size_t>(row)];
    ++fetches.rows_of[owner];
    if (owner == options_.rank || asked[owner]) continue;
    asked[owner] = true;
    ++fetches.requests_to[owner];
  }
}

/// Puts the prefill into the frames, and returns those of its rows that were in none.
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

Result<RankFetches> RankPool::Play(const Trace& superbatch) {
  AccessCosts costs{
      .class_of = {},
      .cost = {static_cast<float>(options_.local_cost), static_cast<float>(options_.remote_cost)}};
  costs.class_of.reserve(superbatch.keys.size());
  for (const CacheKey row : superbatch.keys) {
    const bool own = rank_of_[static_cast<std::size_t>(row)] == options_.rank;
    costs.class_of.push_back(own ? kLocal : kRemote);
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Policy> policy,
                           MakeClassSchedule(superbatch, options_.frame_count, rank_of_.size(),
                                             costs, history_ ? &*history_ : nullptr));
  RankFetches fetches(options_.ranks);
  Fetch(Start(policy->Prefill()), fetches);
  StepPlan plan;
  std::vector<CacheKey> misses;
  for (std::size_t s = 0; s < superbatch.steps(); ++s) {
    const std::span<const CacheKey> rows = superbatch.step(s);
    RHIZOME_RETURN_IF_ERROR(policy->Step(rows, plan));
    misses.clear();
    for (const std::uint32_t miss : plan.misses) misses.push_back(rows[miss]);
    Fetch(misses, fetches);
    for (const StepPlan::Place& insert : plan.inserts) frames_[insert.frame] = rows[insert.request];
  }
  return fetches;
}

}  // namespace rhizome::inline internal
