#include "rhizome/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/policy/basic_policies.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {

Status CheckTrace(const Trace& trace, std::uint64_t key_count) {
  const std::vector<std::uint64_t>& offsets = trace.offsets;
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != trace.keys.size() ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    return Status::InvalidArgument(fmt::format(
        "the offsets of a trace's steps do not ascend from 0 to its {} keys", trace.keys.size()));
  }
  for (const CacheKey key : trace.keys) {
    if (key < 0 || static_cast<std::uint64_t>(key) >= key_count) {
      return Status::InvalidArgument(
          fmt::format("key {} of a trace is not in [0, {})", key, key_count));
    }
  }
  return Status::Ok();
}

Result<std::vector<CacheKey>> RankByUse(const Trace& trace, std::uint64_t key_count) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace, key_count));
  std::vector<std::uint32_t> uses(key_count, 0);
  for (const CacheKey key : trace.keys) ++uses[static_cast<std::size_t>(key)];

  // Counting sort: bucket u starts after all keys that are used more than u times.
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
} catch (...) {
  return Fail(StatusOfException());
}

Result<ReplayCounts> Replay(Policy& policy, const Trace& trace) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace));
  ReplayCounts counts;
  counts.prefill = policy.Prefill().size();
  StepPlan plan;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    const std::span<const CacheKey> keys = trace.step(s);
    RHIZOME_RETURN_IF_ERROR(policy.Step(keys, plan));
    counts.requests += keys.size();
    counts.hits += plan.hits.size();
    counts.misses += plan.misses.size();
  }
  return counts;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
