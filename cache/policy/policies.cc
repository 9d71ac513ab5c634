#include "rhizome/cache/policies.h"

#include <algorithm>
#include <array>

#include "rhizome/cache/belady_schedule.h"
#include "rhizome/cache/cost_schedule.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

/// Everything that is known about a kind of policy before one is made.
struct PolicyEntry {
  PolicyKind kind;
  std::string_view name;
  bool knows_future;
  std::uint64_t bytes_per_key;
  std::unique_ptr<Policy> (*make)(const PolicyOptions& options, const Trace& trace);
};

/// Makes an online policy, which takes only frame_count and key_count.
template <std::unique_ptr<Policy> (*make)(std::uint32_t frame_count, std::uint64_t key_count)>
std::unique_ptr<Policy> MakeOnline(const PolicyOptions& options, const Trace&) {
  return make(options.frame_count, options.key_count);
}

std::unique_ptr<Policy> MakeNone(const PolicyOptions&, const Trace&) { return MakeNonePolicy(); }

std::unique_ptr<Policy> MakeStatic(const PolicyOptions& options, const Trace& trace) {
  return MakeStaticPolicy(options.frame_count, options.key_count,
                          RankByUse(trace, options.key_count));
}

std::unique_ptr<Policy> MakeBelady(const PolicyOptions& options, const Trace& trace) {
  return MakeBeladySchedule(trace, options.frame_count, options.key_count);
}

std::unique_ptr<Policy> MakeCost(const PolicyOptions& options, const Trace& trace) {
  return MakeCostSchedule(trace, options.frame_count, options.key_count, options.unit_bytes,
                          options.cost);
}

constexpr std::uint64_t kFrameTableBytes = 4;  // FrameTable: the frame of each key

/// To add a policy, add a value to PolicyKind, a function that makes it, and a row here.
constexpr std::array<PolicyEntry, 9> kPolicies = {{
    {PolicyKind::kBelady, "belady", true, 0, MakeBelady},
    {PolicyKind::kCost, "cost", true, 0, MakeCost},
    {PolicyKind::kLru, "lru", false, kFrameTableBytes, MakeOnline<MakeLruPolicy>},
    {PolicyKind::kFifo, "fifo", false, kFrameTableBytes, MakeOnline<MakeFifoPolicy>},
    {PolicyKind::kClock, "clock", false, kFrameTableBytes + 1, MakeOnline<MakeClockPolicy>},
    {PolicyKind::kS3Fifo, "s3fifo", false, 14, MakeOnline<MakeS3FifoPolicy>},
    // Two superbatches' frame tables, and the ranking's arrays while it is made.
    {PolicyKind::kStatic, "static", true, 2 * kFrameTableBytes + 4 + 8, MakeStatic},
    {PolicyKind::kMatch, "match", false, kFrameTableBytes, MakeOnline<MakeMatchPolicy>},
    {PolicyKind::kNone, "none", false, 0, MakeNone},
}};

const PolicyEntry& EntryOf(PolicyKind kind) {
  const auto* const found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                         [&](const PolicyEntry& e) { return e.kind == kind; });
  RHIZOME_CHECK(found != kPolicies.end());
  return *found;
}

}  // namespace

std::vector<PolicyKind> AllPolicies() {
  std::vector<PolicyKind> kinds;
  for (const PolicyEntry& entry : kPolicies) kinds.push_back(entry.kind);
  return kinds;
}

std::string_view PolicyName(PolicyKind kind) { return EntryOf(kind).name; }

std::optional<PolicyKind> ParsePolicy(std::string_view name) {
  for (const PolicyEntry& entry : kPolicies)
    if (entry.name == name) return entry.kind;
  return std::nullopt;
}

bool KnowsTheFuture(PolicyKind kind) { return EntryOf(kind).knows_future; }

std::uint64_t PolicyBytesPerKey(PolicyKind kind) { return EntryOf(kind).bytes_per_key; }

std::unique_ptr<Policy> MakePolicy(const PolicyOptions& options, const Trace& trace) {
  if (options.frame_count == 0) return MakeNonePolicy();
  return EntryOf(options.kind).make(options, trace);
}

}  // namespace rhizome
