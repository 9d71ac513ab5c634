#include "rhizome/cache/policy.h"

#include <algorithm>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome {

std::vector<CacheKey> RankByUse(const Trace& trace, std::uint64_t key_count) {
  std::vector<std::uint32_t> uses(key_count, 0);
  for (const CacheKey key : trace.keys) ++uses[static_cast<std::size_t>(key)];

  // A counting sort: bucket u starts behind the keys that are used more often than u times.
  const std::uint32_t most = uses.empty() ? 0 : *std::max_element(uses.begin(), uses.end());
  std::vector<std::uint64_t> begin(std::size_t{most} + 2, 0);
  for (const std::uint32_t u : uses) ++begin[u];
  std::uint64_t used = 0;
  for (std::size_t u = most; u > 0; --u) used += std::exchange(begin[u], used);

  std::vector<CacheKey> ranking(used);
  for (std::size_t key = 0; key < uses.size(); ++key) {
    if (uses[key] > 0) ranking[begin[uses[key]]++] = static_cast<CacheKey>(key);
  }
  RHIZOME_DCHECK(std::is_sorted(ranking.begin(), ranking.end(), [&uses](CacheKey a, CacheKey b) {
    return uses[static_cast<std::size_t>(a)] > uses[static_cast<std::size_t>(b)];
  }));
  return ranking;
}

ReplayCounts Replay(Policy& policy, const Trace& trace) {
  ReplayCounts counts;
  counts.prefill = policy.Prefill().size();
  StepPlan plan;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    const std::span<const CacheKey> keys = trace.step(s);
    policy.Step(keys, plan);
    RHIZOME_CHECK(plan.hits.size() + plan.misses.size() == keys.size());
    counts.requests += keys.size();
    counts.hits += plan.hits.size();
    counts.misses += plan.misses.size();
  }
  return counts;
}

}  // namespace rhizome
