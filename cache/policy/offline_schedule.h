#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

// Shared parts of the schedules for a known future (belady_schedule.h, cost_schedule.h).

/// An access is a position in Trace::keys.
using AccessId = std::uint32_t;
using StepId = std::uint32_t;
inline constexpr AccessId kNever = std::numeric_limits<AccessId>::max();

/// Outcome of one access, in 4 bytes: served from a frame (frame * 2 + 1), read and put into a
/// frame (frame * 2), or read and not kept. While the schedule is built, kCandidate marks an access
/// whose key was just read and has no frame yet.
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
  std::vector<NextUse> first;  ///< first use of each key that the caller asked about
};

/// Finds the next use of every access, and the first use of each of `keys`, in one backward pass.
/// Errors: any error of CheckTrace; kInvalidArgument, a key occurs twice in a step, or there are
/// more accesses or steps than can be numbered.
Result<KnownUses> FindUses(const Trace& trace, std::uint64_t key_count,
                           std::span<const CacheKey> keys = {});

/// The cost of reading the row of each access, as one of a few classes. Only the ratios of the
/// costs matter. By default all accesses have the same cost.
struct AccessCosts {
  std::vector<std::uint8_t> class_of;  ///< by access; empty: all are of class 0
  std::vector<float> cost = {1};       ///< by class, in any unit, above 0

  std::size_t ClassOf(std::uint64_t access) const {
    return class_of.empty() ? 0 : class_of[access];
  }
};

/// Expected use of keys that a trace does not request again: the chance that a step after the
/// trace's end requests a key, in units of `chance_of_one`. A key of weight 0 is worth nothing.
struct KeyPrior {
  std::span<const std::uint32_t> weight = {};  ///< by key; empty: all are 0
  float chance_of_one = 0;                     ///< positive unless all weights are 0

  std::uint32_t WeightOf(CacheKey key) const {
    return weight.empty() ? 0 : weight[static_cast<std::size_t>(key)];
  }
  float ChanceOf(CacheKey key) const {
    return std::min(1.0F, static_cast<float>(WeightOf(key)) * chance_of_one);
  }
};

/// Keys that a pool holds, ordered by last use with the oldest first, and the cost class of each.
struct HeldKeys {
  std::vector<CacheKey> keys;
  std::vector<std::uint8_t> classes;  ///< by position; empty: all are of class 0

  std::size_t ClassOf(std::size_t position) const {
    return classes.empty() ? 0 : classes[position];
  }
};

/// Contents of the pool at the start of a schedule, as left by the previous schedule. Keys of
/// weight 0 are treated as absent.
struct ScheduleStart {
  KeyPrior prior = {};
  const HeldKeys* held = nullptr;  ///< null: empty; else KnownUses::first is for these keys
};

using PrefillList = std::vector<PrefillEntry>;

struct Schedule {
  std::vector<Fate> fates;  ///< by access
  PrefillList prefill;      ///< includes keys already held that are kept until used or to the end
  HeldKeys held = {};       ///< keys left at the end; empty without a prior
};

/// Builds a schedule. After every step the pool keeps the most valuable keys among those that it
/// held and those that the step read. The value of a key is the cost of its next read divided by
/// the number of steps until then. With equal costs these are the keys that are needed again
/// soonest, and the schedule is Belady's.
///
/// With a prior the schedule starts from the contents of the pool, and a key that the trace does
/// not request again may remain: it counts as needed 1 / chance steps after the trace's end. With
/// equal costs every key that the trace requests again is therefore more valuable, and the number
/// of reads is minimal for the given start; the prior only decides what the next trace finds in the
/// pool. With all weights 0 the schedule equals the one without a prior.
Schedule BuildSchedule(const Trace& trace, const KnownUses& uses, std::uint32_t frame_count,
                       const AccessCosts& costs, const ScheduleStart& start = {});

/// The key that each frame of a pool holds, by frame; kNoRow (sweep.h) for an empty frame.
using FrameKeys = std::vector<CacheKey>;

/// Returns the keys of a schedule's prefill that no frame in `frames` holds, sorted.
std::vector<CacheKey> ReadsOf(const Schedule& schedule, const FrameKeys& frames);

/// Sets `frames` to the contents that a schedule leaves in them.
void LeaveIn(const Trace& trace, const Schedule& schedule, FrameKeys& frames);

/// Wraps a schedule as a policy that needs 4 bytes per access and 16 per step. Step fails with
/// kInvalidArgument if its keys differ from the keys of that step in the trace. `reads`: the keys
/// of the prefill that must be read (Policy::PrefillReads), if known.
std::unique_ptr<Policy> MakeScheduledPolicy(
    const Trace& trace, Schedule schedule,
    std::optional<std::vector<CacheKey>> reads = std::nullopt);

}  // namespace internal
}  // namespace rhizome
