#include "rhizome/cache/belady_schedule.h"

#include "rhizome/cache/offline_schedule.h"

namespace rhizome::inline internal {

std::unique_ptr<Policy> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                           std::uint64_t key_count) {
  return MakeScheduledPolicy(
      trace, BuildSchedule(trace, FindNextUses(trace, key_count), frame_count, AccessCosts()));
}

}  // namespace rhizome::inline internal
