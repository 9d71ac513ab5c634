#include "rhizome/cache/belady_schedule.h"

#include "rhizome/cache/offline_schedule.h"
#include "rhizome/storage/exceptions.h"

namespace rhizome::inline internal {

Result<std::unique_ptr<Policy>> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                                   std::uint64_t key_count) try {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<NextUse> next, FindNextUses(trace, key_count));
  return MakeScheduledPolicy(trace, BuildSchedule(trace, next, frame_count, AccessCosts()));
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome::inline internal
