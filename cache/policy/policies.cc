#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/cost_schedule.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/policy.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

/// Static properties of a policy kind.
struct PolicyEntry {
  PolicyKind kind;
  std::string_view name;
  bool knows_future;
  std::uint64_t bytes_per_key;
  Result<std::unique_ptr<Policy>> (*make)(const PolicyOptions& options, const Trace& trace);
};

/// Creates an online policy, which needs only frame_count and key_count.
template <std::unique_ptr<Policy> (*make)(std::uint32_t frame_count, std::uint64_t key_count)>
Result<std::unique_ptr<Policy>> MakeOnline(const PolicyOptions& options, const Trace&) {
  return make(options.frame_count, options.key_count);
}

Result<std::unique_ptr<Policy>> MakeNone(const PolicyOptions&, const Trace&) {
  return MakeNonePolicy();
}

Result<std::unique_ptr<Policy>> MakeStatic(const PolicyOptions& options, const Trace& trace) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<CacheKey> ranking,
                           RankByUse(trace, options.key_count));
  return MakeStaticPolicy(options.frame_count, options.key_count, ranking);
}

Result<std::unique_ptr<Policy>> MakeBelady(const PolicyOptions& options, const Trace& trace) {
  return MakeBeladySchedule(trace, options.frame_count, options.key_count, options.history);
}

Result<std::unique_ptr<Policy>> MakeCost(const PolicyOptions& options, const Trace& trace) {
  return MakeCostSchedule(trace, options.frame_count, options.key_count, options.unit_bytes,
                          options.cost, options.history);
}

constexpr std::uint64_t kFrameTableBytes = 4;  // FrameTable: the frame of each key

/// To add a policy, add a value to PolicyKind, a function that creates it, and a row here.
constexpr std::array<PolicyEntry, 9> kPolicies = {{
    {PolicyKind::kBelady, "belady", true, 0, MakeBelady},
    {PolicyKind::kCost, "cost", true, 0, MakeCost},
    {PolicyKind::kLru, "lru", false, kFrameTableBytes, MakeOnline<MakeLruPolicy>},
    {PolicyKind::kFifo, "fifo", false, kFrameTableBytes, MakeOnline<MakeFifoPolicy>},
    {PolicyKind::kClock, "clock", false, kFrameTableBytes + 1, MakeOnline<MakeClockPolicy>},
    {PolicyKind::kS3Fifo, "s3fifo", false, 14, MakeOnline<MakeS3FifoPolicy>},
    // Frame tables of two superbatches, and the arrays used to build the ranking.
    {PolicyKind::kStatic, "static", true, 2 * kFrameTableBytes + 4 + 8, MakeStatic},
    {PolicyKind::kMatch, "match", false, kFrameTableBytes, MakeOnline<MakeMatchPolicy>},
    {PolicyKind::kNone, "none", false, 0, MakeNone},
}};

/// Returns null if there is no such kind.
const PolicyEntry* FindEntry(PolicyKind kind) {
  const auto* const found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                         [&](const PolicyEntry& e) { return e.kind == kind; });
  return found == kPolicies.end() ? nullptr : found;
}

const PolicyEntry& EntryOf(PolicyKind kind) {
  const PolicyEntry* const entry = FindEntry(kind);
  RHIZOME_CHECK(entry != nullptr);
  return *entry;
}

}  // namespace

std::vector<PolicyKind> AllPolicies() {
  std::vector<PolicyKind> kinds;
  for (const PolicyEntry& entry : kPolicies) kinds.push_back(entry.kind);
  return kinds;
}

std::string_view PolicyName(PolicyKind kind) { return EntryOf(kind).name; }

std::string_view PriorName(Prior prior) { return prior == Prior::kNone ? "none" : "uses"; }

std::optional<PolicyKind> ParsePolicy(std::string_view name) {
  for (const PolicyEntry& entry : kPolicies)
    if (entry.name == name) return entry.kind;
  return std::nullopt;
}

bool KnowsTheFuture(PolicyKind kind) { return EntryOf(kind).knows_future; }

bool TakesPrior(PolicyKind kind) {
  return kind == PolicyKind::kBelady || kind == PolicyKind::kCost;
}

std::uint64_t PolicyBytesPerKey(PolicyKind kind) { return EntryOf(kind).bytes_per_key; }

Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options, const Trace& trace) try {
  const PolicyEntry* const entry = FindEntry(options.kind);
  if (entry == nullptr) {
    return Fail(Status::InvalidArgument(
        fmt::format("there is no cache policy {}", static_cast<unsigned>(options.kind))));
  }
  if (options.frame_count == 0) return MakeNonePolicy();
  return entry->make(options, trace);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
