#include "cache/job/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "storage/base/bytes_left.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Longer superbatches bring no benefit: the prefill that they save is small at this length.
constexpr std::uint64_t kMaxSuperbatch = 128;

/// Schedules may use 1/kScheduleShare of the remaining memory, or of kDefaultScheduleBytes if there
/// is no limit.
constexpr std::uint64_t kScheduleShare = 8;
constexpr std::uint64_t kDefaultScheduleBytes = std::uint64_t{256} << 20;

/// A neighbour cache of all lists uses at most 1/kNeighborShare of the remaining memory.
constexpr std::uint64_t kNeighborShare = 4;

/// Minibatches that are sampled together use at most 1/kSweptShare of the remaining memory.
constexpr std::uint64_t kSweptShare = 8;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// Knowledge of future accesses ends with every superbatch. In a superbatch shorter than this the
/// pool saves few reads, so schedules up to this length take precedence over a larger cache.
constexpr std::uint64_t kMinUsefulSuperbatch = 8;

/// Returns the bytes left for the cache by superbatches of a given length, or nullopt if the
/// schedules do not fit.
using CacheFor = std::function<std::optional<std::uint64_t>(std::uint64_t superbatch)>;

/// Relative differences between trials below this value are treated as noise.
constexpr double kTrialNoise = 0.02;

/// Result of trying several superbatch lengths. `open_ended` is set if longer ones, which could not
/// be tried, may be better.
struct Tried {
  std::optional<std::uint32_t> best;
  bool open_ended = false;
};

/// Tries superbatches of increasing length. The time first falls with the length, because more of
/// the future is known, and then rises, because less memory is left for the cache. The search ends
/// after two consecutive lengths that do not improve on the best.
Tried TrySuperbatches(const SuperbatchTrial& trial, std::uint64_t most, const CacheFor& cache_for) {
  Tried tried;
  double least = 0;
  int worse = 0;
  for (const std::uint32_t superbatch :
       {1U, 2U, 4U, 6U, 8U, 10U, 12U, 16U, 20U, 24U, 32U, 48U, 64U}) {
    const std::optional<std::uint64_t> cache_bytes = cache_for(superbatch);
    if (superbatch > most || !cache_bytes || worse == 2) break;
    tried.open_ended = superbatch > trial.most && worse == 0;
    if (superbatch > trial.most) break;
    const double seconds = trial.seconds(superbatch, *cache_bytes);
    const bool better = !tried.best || seconds < least * (1 - kTrialNoise);
    worse = better ? 0 : worse + 1;
    if (!better) continue;
    tried.best = superbatch;
    least = seconds;
  }
  return tried;
}

/// Chooses the superbatch length. It leaves several superbatches per job rather than one long one,
/// so that sampling overlaps training.
std::uint32_t ChooseSuperbatch(std::uint64_t budget_bytes, const FixedMemory& fixed,
                               const MemoryNeeds& needs, const SuperbatchTrial& trial,
                               const CacheFor& cache_for) {
  if (fixed.superbatch != 0) return fixed.superbatch;
  const std::uint64_t useful =
      std::min(kMaxSuperbatch, std::max<std::uint64_t>(needs.minibatches / 4, 8));
  const std::uint64_t one = std::max<std::uint64_t>(needs.schedule_bytes, 1);
  const auto share =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(budget_bytes / one, 1, useful));
  const Tried tried = TrySuperbatches(trial, useful, cache_for);
  if (!tried.best) return share;
  return tried.open_ended ? std::max(*tried.best, share) : *tried.best;
}

/// Returns the size of the neighbour cache in bytes: the caller's fixed value, else all lists if
/// they fit into a share of the memory that remains after the job's minimum. A cache of some lists
/// saves less than the same memory in minibatches that are sampled together, or in rows.
std::uint64_t NeighborCacheBytes(std::uint64_t left_bytes, const FixedMemory& fixed,
                                 const MemoryNeeds& needs) {
  if (needs.neighbor_full_bytes == 0) return 0;
  if (fixed.neighbor_cache_bytes)
    return std::min(*fixed.neighbor_cache_bytes, needs.neighbor_full_bytes);
  const std::uint64_t most = std::min(left_bytes / kNeighborShare, kDefaultNeighborCacheBytes);
  return needs.neighbor_full_bytes <= most ? needs.neighbor_full_bytes : 0;
}

/// Returns how many minibatches of a superbatch are sampled together within `room_bytes`. With all
/// lists in memory there is nothing to gain.
std::uint32_t SweptOf(std::uint64_t superbatch, std::uint64_t room_bytes,
                      std::uint64_t neighbor_cache_bytes, const MemoryNeeds& needs) {
  if (needs.swept_bytes == 0 || neighbor_cache_bytes >= needs.neighbor_full_bytes) return 1;
  return static_cast<std::uint32_t>(
      std::min(superbatch, 1 + std::min(room_bytes, kDefaultSweptBytes) / needs.swept_bytes));
}

/// Margin added to the minimum that an error message reports. Jobs measure the memory that their
/// process already holds, and the next run of the same job may hold a little more; the reported
/// minimum must work for it, too.
constexpr std::uint64_t kHeldVaries = std::uint64_t{1} << 20;

std::string MiB(std::uint64_t bytes) {
  return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
}

Status TooSmall(std::uint64_t limit_bytes, std::uint64_t min_bytes) {
  return Status::OutOfMemory(
      fmt::format("a memory limit of {} is too small: this job needs at least {} beyond the bare "
                  "process; raise the limit, or use a smaller batch, fanout or cache",
                  MiB(limit_bytes), MiB(min_bytes + kHeldVaries)));
}

/// Plans for a neighbour cache and a row cache that use the same memory one after the other.
Result<JobMemoryPlan> PlanTurns(std::uint64_t limit_bytes, FixedMemory fixed, MemoryNeeds needs,
                                const SuperbatchTrial& trial) {
  fixed.in_turn = false;
  const std::uint64_t full_bytes = std::exchange(needs.neighbor_full_bytes, 0);
  RHIZOME_ASSIGN_OR_RETURN(JobMemoryPlan plan, PlanMemory(limit_bytes, fixed, needs, trial));
  const std::uint64_t wanted =
      std::min(fixed.neighbor_cache_bytes.value_or(full_bytes), full_bytes);
  const std::uint64_t room =
      limit_bytes == 0
          ? full_bytes
          : std::min(plan.cache_bytes,
                     BytesLeft(limit_bytes, needs.held_bytes + needs.neighbor_build_bytes));
  if (fixed.neighbor_cache_bytes && wanted > room)
    return Fail(TooSmall(limit_bytes, limit_bytes + wanted - room));
  const std::uint64_t chosen = std::min(wanted, room);
  plan.neighbor_cache_bytes =
      !fixed.neighbor_cache_bytes && chosen < needs.neighbor_table_bytes ? 0 : chosen;
  plan.in_turn = true;
  return plan;
}

/// Shares the memory if all lists fit only that way; else plans both caches side by side.
Result<JobMemoryPlan> PlanEither(std::uint64_t limit_bytes, FixedMemory fixed,
                                 const MemoryNeeds& needs, const SuperbatchTrial& trial) {
  fixed.in_turn = false;
  Result<JobMemoryPlan> beside = PlanMemory(limit_bytes, fixed, needs, trial);
  if (needs.neighbor_full_bytes == 0 || fixed.neighbor_cache_bytes) return beside;
  if (beside && beside->neighbor_cache_bytes >= needs.neighbor_full_bytes) return beside;
  Result<JobMemoryPlan> turns = PlanTurns(limit_bytes, fixed, needs, trial);
  const bool all = turns && turns->neighbor_cache_bytes >= needs.neighbor_full_bytes;
  return all ? turns : beside;
}

}  // namespace

// Plans a job's memory:
// 1. With in_turn unset or true, both variants or only the shared one are planned by recursion.
// 2. Without a limit, the defaults apply.
// 3. With a limit, the neighbour cache is sized first; the minimum of all parts must fit the limit.
// 4. The superbatch length is chosen by trial or by share, and the cache gets the remaining memory.
Result<JobMemoryPlan> PlanMemory(std::uint64_t limit_bytes, const FixedMemory& fixed,
                                 const MemoryNeeds& needs, const SuperbatchTrial& trial) {
  if (!fixed.in_turn) return PlanEither(limit_bytes, fixed, needs, trial);
  if (*fixed.in_turn) return PlanTurns(limit_bytes, fixed, needs, trial);
  if (limit_bytes == 0) {
    const std::uint64_t cache =
        std::max(fixed.cache_bytes.value_or(std::min(kDefaultCacheBytes, needs.cacheable_bytes)),
                 needs.min_cache_bytes);
    const CacheFor same = [cache](std::uint64_t) { return std::optional(cache); };
    const std::uint32_t superbatch =
        ChooseSuperbatch(kDefaultScheduleBytes, fixed, needs, trial, same);
    const std::uint64_t neighbors = NeighborCacheBytes(kNoLimit, fixed, needs);
    return JobMemoryPlan{.cache_bytes = cache,
                         .superbatch = superbatch,
                         .neighbor_cache_bytes = neighbors,
                         .held_rows = needs.held_rows,
                         .swept = SweptOf(superbatch, kNoLimit, neighbors, needs),
                         .in_turn = false};
  }
  const std::uint64_t cache_floor =
      std::max(fixed.cache_bytes.value_or(needs.min_cache_bytes), needs.min_cache_bytes);
  const std::uint64_t per_minibatch = needs.schedule_bytes;
  const std::uint64_t rest = needs.working_bytes + cache_floor +
                             per_minibatch * std::max<std::uint64_t>(fixed.superbatch, 1);
  const std::uint64_t neighbors = NeighborCacheBytes(
      BytesLeft(limit_bytes, needs.held_bytes + std::max(rest, needs.neighbor_build_bytes)), fixed,
      needs);
  // A neighbour cache is built before any memory except held_bytes is allocated.
  const std::uint64_t least =
      needs.held_bytes + neighbors +
      std::max(rest, neighbors == 0 ? std::uint64_t{0} : needs.neighbor_build_bytes);
  if (least > limit_bytes) return Fail(TooSmall(limit_bytes, least));
  const std::uint64_t left = limit_bytes - needs.held_bytes - needs.working_bytes - neighbors -
                             (fixed.cache_bytes ? cache_floor : 0);
  const std::uint64_t budget =
      fixed.cache_bytes
          ? left
          : std::max(left / kScheduleShare,
                     std::min(per_minibatch * kMinUsefulSuperbatch, left - needs.min_cache_bytes));
  // The minibatches that are sampled together use a share of the memory, if the rest of the job
  // leaves it.
  const auto swept_of = [&](std::uint64_t superbatch) {
    const std::uint64_t taken =
        per_minibatch * superbatch + (fixed.cache_bytes ? 0 : needs.min_cache_bytes);
    return SweptOf(superbatch, std::min(left / kSweptShare, BytesLeft(left, taken)), neighbors,
                   needs);
  };
  const CacheFor cache_for = [&](std::uint64_t superbatch) -> std::optional<std::uint64_t> {
    const std::uint64_t schedules =
        per_minibatch * superbatch + needs.swept_bytes * (swept_of(superbatch) - 1);
    if (fixed.cache_bytes) return schedules <= left ? std::optional(cache_floor) : std::nullopt;
    if (schedules + needs.min_cache_bytes > left) return std::nullopt;
    return std::max(std::min({left - schedules, kDefaultCacheBytes, needs.cacheable_bytes}),
                    needs.min_cache_bytes);
  };
  const std::uint32_t superbatch = ChooseSuperbatch(budget, fixed, needs, trial, cache_for);
  const std::uint64_t cache = cache_for(superbatch).value_or(cache_floor);
  return JobMemoryPlan{.cache_bytes = cache,
                       .superbatch = superbatch,
                       .neighbor_cache_bytes = neighbors,
                       .held_rows = needs.held_rows,
                       .swept = swept_of(superbatch),
                       .in_turn = false};
}

}  // namespace internal
}  // namespace rhizome
