#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/policy.h"

namespace rhizome::inline internal {

// Shared parts of the schedules that know the future (belady_schedule.h, cost_schedule.h).

/// An access is a position in Trace::keys.
using AccessId = std::uint32_t;
using StepId = std::uint32_t;
inline constexpr AccessId kNever = std::numeric_limits<AccessId>::max();

/// The fate of one access, in 4 bytes: served from a frame (frame * 2 + 1), read and put into a
/// frame (frame * 2), or read and not kept. While the schedule is built, kCandidate marks an access
/// whose key was read just now and has not been given a frame yet.
using Fate = std::uint32_t;
inline constexpr Fate kBypass = std::numeric_limits<Fate>::max();
inline constexpr Fate kCandidate = kBypass - 1;
inline constexpr std::uint32_t kMaxFrames = (kCandidate - 1) / 2;

constexpr Fate HitFate(FrameId frame) { return frame * 2 + 1; }
constexpr Fate InsertFate(FrameId frame) { return frame * 2; }
constexpr bool IsHit(Fate fate) { return fate < kCandidate && (fate & 1) != 0; }
constexpr bool IsInsert(Fate fate) { return fate < kCandidate && (fate & 1) == 0; }
constexpr FrameId FrameOf(Fate fate) { return fate / 2; }

/// The next use of an access's key: the access and its step. `access` is kNever if the key is not
/// used again.
struct NextUse {
  AccessId access = kNever;
  StepId step = 0;
};

/// The next use of every access, found backwards. Errors: those of CheckTrace; kInvalidArgument,
/// a key twice in a step, or more accesses or steps than there are numbers for.
Result<std::vector<NextUse>> FindNextUses(const Trace& trace, std::uint64_t key_count);

/// The cost of reading the row of each access, if it has to be read, as one of a few classes. Only
/// the ratios of the costs matter. The default gives all accesses the same cost.
struct AccessCosts {
  std::vector<std::uint8_t> class_of;  ///< by access; empty: all are of class 0
  std::vector<float> cost = {1};       ///< by class, in any unit, above 0
};

using PrefillList = std::vector<PrefillEntry>;

struct Schedule {
  std::vector<Fate> fates;  ///< by access
  PrefillList prefill;
};

/// Builds a schedule. After every step the pool keeps, among the keys that it held and those that
/// the step read, the ones that are worth most: a key's worth is the cost of its next read divided
/// by the number of steps until then. With equal costs these are the keys that are needed again
/// soonest, and the schedule is Belady's.
Schedule BuildSchedule(const Trace& trace, std::span<const NextUse> next, std::uint32_t frame_count,
                       const AccessCosts& costs);

/// Wraps a schedule as a policy of 4 bytes an access and 16 a step. Step stops the process if its
/// keys differ from those of the step that the schedule was built from.
std::unique_ptr<Policy> MakeScheduledPolicy(const Trace& trace, Schedule schedule);

}  // namespace rhizome::inline internal
