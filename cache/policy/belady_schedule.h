#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/policy.h"

namespace rhizome::inline internal {

class ScheduleHistory;
struct AccessCosts;

/// The optimal (Belady) cache for a known future, with bypass. After every step the pool keeps,
/// among the keys that it held and those that the step read, the ones that are needed again
/// soonest. No policy reads fewer rows on any trace, prefill included.
///
/// The schedule is built in three passes over the trace: (1) backwards, to find the next use of
/// every access; (2) forwards, to decide what each step inserts and evicts; (3) to assign frames
/// and to find the keys that can be prefilled at no extra read, so that the pool starts full after
/// one dense sweep. It prefills min(frames, distinct keys) keys, and each is hit before its frame
/// is given to another key.
///
/// Source: Ginex (VLDB 2022), sections 3.3 and 3.4, by the same rule. Its three passes are others:
/// two list the accesses of each key, the third simulates, on a GPU; and it prefills the keys of
/// the first steps.
///
/// With a history (schedule_history.h) the pool begins with what the schedule before has left,
/// reads are the fewest from there, and among the keys that the trace does not ask for again those
/// stay that were used most often so far: the schedule after this one finds them.
///
/// Time and memory O(accesses): while it is built about 20 bytes an access (and 8 a key, where the
/// keys are few), afterwards 4 bytes an access and 16 a step. At most 2^32 - 2 accesses.
///
/// Errors: those of CheckTrace; kInvalidArgument, a step asks for a key twice, or the accesses are
/// too many; kOutOfMemory. Step fails (kInvalidArgument) if its keys are not the step's that the
/// schedule was built from.
Result<std::unique_ptr<Policy>> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                                   std::uint64_t key_count,
                                                   ScheduleHistory* history = nullptr);

/// The same where reads cost what `costs` says, by access: rows of this machine's disk and of other
/// ranks. Reads of equal cost alone are then the fewest.
///
/// `frames`: null, or by frame what the pool holds (kNoRow: nothing), as many as frame_count. The
/// policy then says what of its prefill is read (Policy::PrefillReads): what they do not hold; and
/// they are set to what the schedule leaves in them. What a pool reads is then known beforehand,
/// exactly. Errors: as above.
Result<std::unique_ptr<Policy>> MakeClassSchedule(const Trace& trace, std::uint32_t frame_count,
                                                  std::uint64_t key_count, const AccessCosts& costs,
                                                  ScheduleHistory* history = nullptr,
                                                  std::vector<CacheKey>* frames = nullptr);

}  // namespace rhizome::inline internal
