#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rhizome/minibatch_options.h"
#include "storage/base/check.h"

namespace rhizome {
namespace {

struct PrefetchEntry {
  Prefetch policy;
  std::string_view name;
  bool has_part;     // whether it has its own part of the pool
  bool needs_lists;  // whether it needs the neighbour lists of all rows
};

constexpr std::array<PrefetchEntry, 7> kPrefetches = {{
    {Prefetch::kBelady, "belady", false, false},
    {Prefetch::kScored, "scored", true, true},
    {Prefetch::kVip, "vip", true, true},
    {Prefetch::kEpoch, "epoch", true, false},
    {Prefetch::kStatic, "static", true, true},
    {Prefetch::kLru, "lru", true, false},
    {Prefetch::kNone, "none", false, false},
}};

const PrefetchEntry& PrefetchEntryOf(Prefetch policy) {
  const auto* const found = std::find_if(kPrefetches.begin(), kPrefetches.end(),
                                         [&](const auto& one) { return one.policy == policy; });
  RHIZOME_CHECK(found != kPrefetches.end());
  return *found;
}

}  // namespace

std::vector<Prefetch> AllPrefetches() {
  std::vector<Prefetch> all;
  for (const PrefetchEntry& one : kPrefetches) all.push_back(one.policy);
  return all;
}

std::string_view PrefetchName(Prefetch policy) { return PrefetchEntryOf(policy).name; }

bool NeedsLists(Prefetch policy) { return PrefetchEntryOf(policy).needs_lists; }

Status CheckPrefetch(const PrefetchOptions& options, std::uint64_t superbatch) {
  const PrefetchEntry& entry = PrefetchEntryOf(options.policy);
  if (options.policy == Prefetch::kEpoch && superbatch != 0) {
    return Status::InvalidArgument(
        "`prefetch=epoch` schedules whole epochs, so it cannot be combined with `superbatch`; omit "
        "that");
  }
  if (options.remote_bytes && !entry.has_part) {
    return Status::InvalidArgument(
        fmt::format("`remote_bytes`: `prefetch={}` reserves no part of the pool for rows of other "
                    "ranks; omit it",
                    entry.name));
  }
  if (options.gamma > 0 && options.gamma < 1) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the decay of scores is {}; it must be between 0 and 1", options.gamma));
}

}  // namespace rhizome
