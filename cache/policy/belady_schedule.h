#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/policy.h"

namespace rhizome::inline internal {

/// The optimal cache for a known future, with bypass: after every step the pool holds, of what it
/// held and what the step read, the keys that are needed again soonest. No policy reads less on any
/// trace, prefill included.
///
/// Built in three passes over the trace (Ginex, VLDB 2022, section 3.4): (1) backwards, the next
/// use of every access; (2) forwards, what each step inserts and evicts; (3) frames, and which keys
/// can be prefilled at no extra read, so that the pool starts full in one dense sweep: min(frames,
/// distinct keys) keys are prefilled, each hit before its frame is given to another.
///
/// Time and memory O(accesses): while it is built about 20 bytes an access (and 8 a key, where the
/// keys are few), afterwards 4 bytes an access and 16 a step. At most 2^32 - 2 accesses.
///
/// Errors: those of CheckTrace; kInvalidArgument, a step asks for a key twice, or the accesses are
/// too many; kOutOfMemory. Step fails (kInvalidArgument) if its keys are not the step's that the
/// schedule was built from.
Result<std::unique_ptr<Policy>> MakeBeladySchedule(const Trace& trace, std::uint32_t frame_count,
                                                   std::uint64_t key_count);

}  // namespace rhizome::inline internal
