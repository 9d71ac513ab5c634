#include "rhizome/cache/policy.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "rhizome/cache/belady_schedule.h"
#include "rhizome/cache/cost_schedule.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

constexpr std::array<std::pair<PolicyKind, std::string_view>, 9> kPolicyNames = {{
    {PolicyKind::kNone, "none"},
    {PolicyKind::kLru, "lru"},
    {PolicyKind::kFifo, "fifo"},
    {PolicyKind::kClock, "clock"},
    {PolicyKind::kS3Fifo, "s3fifo"},
    {PolicyKind::kStatic, "static"},
    {PolicyKind::kBelady, "belady"},
    {PolicyKind::kCost, "cost"},
    {PolicyKind::kMatch, "match"},
}};

}  // namespace

std::string_view PolicyName(PolicyKind kind) {
  for (const auto& [candidate, name] : kPolicyNames) {
    if (candidate == kind) return name;
  }
  return "unknown";
}

std::optional<PolicyKind> ParsePolicy(std::string_view name) {
  for (const auto& [kind, candidate] : kPolicyNames) {
    if (candidate == name) return kind;
  }
  return std::nullopt;
}

std::unique_ptr<Policy> MakePolicy(const PolicyOptions& options, const Trace& trace) {
  const std::uint32_t frames = options.frame_count;
  const std::uint64_t keys = options.key_count;
  if (frames == 0) return MakeNonePolicy();
  switch (options.kind) {
    case PolicyKind::kNone:
      break;
    case PolicyKind::kLru:
      return MakeLruPolicy(frames, keys);
    case PolicyKind::kFifo:
      return MakeFifoPolicy(frames, keys);
    case PolicyKind::kClock:
      return MakeClockPolicy(frames, keys);
    case PolicyKind::kS3Fifo:
      return MakeS3FifoPolicy(frames, keys);
    case PolicyKind::kStatic:
      return MakeStaticPolicy(frames, keys, RankByUse(trace, keys));
    case PolicyKind::kBelady:
      return MakeBeladySchedule(trace, frames, keys);
    case PolicyKind::kCost:
      return MakeCostSchedule(trace, frames, keys, options.unit_bytes, options.cost);
    case PolicyKind::kMatch:
      return MakeMatchPolicy(frames, keys);
  }
  return MakeNonePolicy();
}

bool KnowsTheFuture(PolicyKind kind) {
  return kind == PolicyKind::kBelady || kind == PolicyKind::kCost || kind == PolicyKind::kStatic;
}

std::uint64_t PolicyBytesPerKey(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kNone:
    case PolicyKind::kBelady:
    case PolicyKind::kCost:
      return 0;
    case PolicyKind::kLru:
    case PolicyKind::kFifo:
    case PolicyKind::kMatch:
      return 4;  // FrameTable
    case PolicyKind::kClock:
      return 5;
    case PolicyKind::kS3Fifo:
      return 14;
    case PolicyKind::kStatic:
      return 2 * 4 + 4 + 8;  // of two superbatches, and the ranking while it is made
  }
  return 0;
}

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
