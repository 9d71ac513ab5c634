#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
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

/// The uses of a trace's keys.
struct KnownUses {
  std::vector<NextUse> next;   ///< by access
  std::vector<NextUse> first;  ///< of each of the keys that the caller asked about
};

/// Finds the next use of every access, and the first one of `keys`, going backwards. Errors: those
/// of CheckTrace; kInvalidArgument, a key twice in a step, or more accesses or steps than there are
/// numbers for.
Result<KnownUses> FindUses(const Trace& trace, std::uint64_t key_count,
                           std::span<const CacheKey> keys = {});

/// The cost of reading the row of each access, if it has to be read, as one of a few classes. Only
/// the ratios of the costs matter. The default gives all accesses the same cost.
struct AccessCosts {
  std::vector<std::uint8_t> class_of;  ///< by access; empty: all are of class 0
  std::vector<float> cost = {1};       ///< by class, in any unit, above 0

  std::size_t ClassOf(std::uint64_t access) const {
    return class_of.empty() ? 0 : class_of[access];
  }
};

/// Expectations of keys that a trace does not ask for again: the chance that a step after its
/// end asks for a key, in units of `chance_of_one`. A key of weight 0 is worth nothing.
struct KeyPrior {
  std::span<const std::uint32_t> weight = {};  ///< by key; empty: all are 0
  float chance_of_one = 0;                     ///< above 0, unless all weights are 0

  std::uint32_t WeightOf(CacheKey key) const {
    return weight.empty() ? 0 : weight[static_cast<std::size_t>(key)];
  }
  float ChanceOf(CacheKey key) const {
    return std::min(1.0F, static_cast<float>(WeightOf(key)) * chance_of_one);
  }
};

/// Keys that a pool holds, those first that were not used for longest, and the cost class of each.
struct HeldKeys {
  std::vector<CacheKey> keys;
  std::vector<std::uint8_t> classes;  ///< by position; empty: all are of class 0

  std::size_t ClassOf(std::size_t position) const {
    return classes.empty() ? 0 : classes[position];
  }
};

/// The pool in which a schedule begins: the one before it has left that. Keys of weight 0 are taken
/// to be gone.
struct ScheduleStart {
  KeyPrior prior = {};
  const HeldKeys* held = nullptr;  ///< null: nothing; else KnownUses::first is that of these keys
};

using PrefillList = std::vector<PrefillEntry>;

struct Schedule {
  std::vector<Fate> fates;  ///< by access
  PrefillList prefill;      ///< with what the pool holds already and keeps until it is used, or on
  HeldKeys held = {};       ///< what it leaves; nothing without a prior
};

/// Builds a schedule. After every step the pool keeps, among the keys that it held and those that
/// the step read, the ones that are worth most: a key's worth is the cost of its next read divided
/// by the number of steps until then. With equal costs these are the keys that are needed again
/// soonest, and the schedule is Belady's.
///
/// With a prior it begins with what the pool holds, and a key that the trace does not ask for again
/// may stay: it counts as needed 1 / chance steps after the trace's end. Where costs are equal, all
/// keys that the trace asks for again are therefore worth more, and the reads of the trace are the
/// fewest that are possible from where it begins; what the prior decides is what the next trace
/// finds. With weights of 0 the schedule is the one without a prior.
Schedule BuildSchedule(const Trace& trace, const KnownUses& uses, std::uint32_t frame_count,
                       const AccessCosts& costs, const ScheduleStart& start = {});

/// The key that each frame of a pool holds, by frame; kNoRow (sweep.h): nothing.
using FrameKeys = std::vector<CacheKey>;

/// Returns the keys of a schedule's prefill that `frames` do not hold, sorted.
std::vector<CacheKey> ReadsOf(const Schedule& schedule, const FrameKeys& frames);

/// Sets `frames` to what a schedule leaves in them.
void LeaveIn(const Trace& trace, const Schedule& schedule, FrameKeys& frames);

/// Wraps a schedule as a policy of 4 bytes an access and 16 a step. Step stops the process if its
/// keys differ from those of the step that the schedule was built from. `reads`: of its prefill
/// (Policy::PrefillReads).
std::unique_ptr<Policy> MakeScheduledPolicy(
    const Trace& trace, Schedule schedule,
    std::optional<std::vector<CacheKey>> reads = std::nullopt);

}  // namespace rhizome::inline internal
