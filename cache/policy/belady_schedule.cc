#include "cache/policy/belady_schedule.h"

#include <utility>

#include "cache/policy/offline_schedule.h"
#include "cache/policy/schedule_history.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<Policy>> MakeClassSchedule(const Trace& trace, std::uint32_t frame_count,
                                                  std::uint64_t key_count, const AccessCosts& costs,
                                                  ScheduleHistory* history,
                                                  std::vector<CacheKey>* frames) try {
  const HeldKeys nothing;
  const HeldKeys& held = history == nullptr ? nothing : history->held();
  RHIZOME_ASSIGN_OR_RETURN(const KnownUses uses, FindUses(trace, key_count, held.keys));
  if (history != nullptr) history->Count(trace);
  Schedule schedule = BuildSchedule(trace, uses, frame_count, costs,
                                    history == nullptr ? ScheduleStart() : history->start());
  if (history != nullptr) history->SetHeld(std::exchange(schedule.held, {}));
  if (frames == nullptr) return MakeScheduledPolicy(trace, std::move(schedule));
  std::vector<CacheKey> reads = ReadsOf(schedule, *frames);
  LeaveIn(trace, schedule, *frames);
  return MakeScheduledPolicy(trace, std::move(schedule), std::move(reads));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<Policy>> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                                   std::uint64_t key_count,
                                                   ScheduleHistory* history) {
  return MakeClassSchedule(trace, frame_count, key_count, AccessCosts(), history);
}

}  // namespace internal
}  // namespace rhizome
