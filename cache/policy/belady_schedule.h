#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

class ScheduleHistory;
struct AccessCosts;

/// The optimal (Belady) cache for a known future, with bypass. After every step the pool keeps,
/// among the keys that it held and the keys that the step read, the ones that are needed again
/// soonest. No policy reads fewer rows on any trace, prefill included.
///
/// The schedule is built in three passes over the trace: (1) backwards, to find the next use of
/// every access; (2) forwards, to decide what each step inserts and evicts; (3) to assign frames
/// and to find the keys that can be prefilled without an extra read, so that the pool starts full
/// after one dense sweep. It prefills min(frames, distinct keys) keys, and each is hit before its
/// frame is reused for another key.
///
/// Source: Ginex (VLDB 2022), sections 3.3 and 3.4, with the same rule but different passes. Ginex
/// uses two passes to list the accesses of each key and a third to simulate, on a GPU; it prefills
/// the keys of the first steps.
///
/// With a history (schedule_history.h) the pool starts with the contents that the previous schedule
/// left. The number of reads is minimal from that state. Among the keys that the trace does not
/// request again, the most frequently used ones remain for the next schedule to find.
///
/// Time and memory O(accesses): about 20 bytes per access while it is built (and 8 per key if there
/// are few keys); afterwards 4 bytes per access and 16 per step. At most 2^32 - 2 accesses.
///
/// Errors: any error of CheckTrace; kInvalidArgument, a step requests a key twice, or there are too
/// many accesses; kOutOfMemory. Step fails with kInvalidArgument if its keys differ from the keys
/// of that step in the trace.
Result<std::unique_ptr<Policy>> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                                   std::uint64_t key_count,
                                                   ScheduleHistory* history = nullptr);

/// As above, for reads whose cost per access is given by `costs`: rows may be on this machine's
/// disk or on other ranks. The number of reads is minimal only if all costs are equal.
///
/// `frames` is null, or has frame_count entries: the key that each frame of the pool holds, or
/// kNoRow if it is empty. The policy then reports which keys of its prefill must be read, i.e.
/// those that no frame holds (Policy::PrefillReads), and `frames` is set to the contents that the
/// schedule leaves. The reads of the pool are thus known exactly in advance. Errors: as above.
Result<std::unique_ptr<Policy>> MakeClassSchedule(const Trace& trace, std::uint32_t frame_count,
                                                  std::uint64_t key_count, const AccessCosts& costs,
                                                  ScheduleHistory* history = nullptr,
                                                  std::vector<CacheKey>* frames = nullptr);

}  // namespace internal
}  // namespace rhizome
