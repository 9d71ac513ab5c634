#include "cache/policy/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/sort/spreadsort/integer_sort.hpp>
#include <optional>
#include <vector>

#include "cache/policy/basic_policies.h"
#include "cache/policy/schedule_history.h"
#include "cache/policy/sweep.h"
#include "rhizome/policy.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Sums the time and bytes of sweeps over sorted rows.
class Sweeps {
 public:
  Sweeps(std::uint64_t row_bytes, const ReadCost& cost)
      : row_bytes_(row_bytes), sweep_(row_bytes, cost) {}

  /// Adds a sweep over `rows`, which it sorts in place.
  void Add(std::vector<CacheKey>& rows) {
    boost::sort::spreadsort::integer_sort(rows.begin(), rows.end());
    CacheKey before = kNoRow;
    for (const CacheKey row : rows) {
      const bool joined = sweep_.Joined(before, row);
      time_.seconds += sweep_.SecondsAfter(before, row);
      time_.bytes += row_bytes_;
      if (joined) time_.bytes += static_cast<std::uint64_t>(row - before - 1) * row_bytes_;
      if (!joined) ++time_.reads;
      before = row;
    }
    time_.rows += rows.size();
  }

  const ReplayTime& time() const { return time_; }

 private:
  const std::uint64_t row_bytes_;
  const Sweep sweep_;
  ReplayTime time_;
};

/// Collects the keys that `plan` misses.
void ListMisses(std::span<const CacheKey> keys, const StepPlan& plan, std::vector<CacheKey>& out) {
  out.clear();
  for (const std::uint32_t miss : plan.misses) out.push_back(keys[miss]);
}

/// Replays consecutive superbatches in one pool.
class PoolReplay {
 public:
  explicit PoolReplay(const PolicyOptions& options)
      : sweeps_(options.unit_bytes, options.cost), frames_(options.frame_count, kNoRow) {}

  Status Play(Policy& policy, const Trace& part) {
    Start(policy.Prefill());
    StepPlan plan;
    for (std::size_t s = 0; s < part.steps(); ++s) {
      RHIZOME_RETURN_IF_ERROR(policy.Step(part.step(s), plan));
      ListMisses(part.step(s), plan, rows_);
      sweeps_.Add(rows_);
      for (const StepPlan::Place& insert : plan.inserts) {
        RHIZOME_DCHECK(insert.frame < frames_.size() && insert.request < part.step(s).size());
        frames_[insert.frame] = part.step(s)[insert.request];
      }
    }
    return Status::Ok();
  }

  const ReplayTime& time() const { return sweeps_.time(); }

 private:
  /// Places the prefill in the frames and reads the keys that the pool does not hold.
  void Start(std::span<const PrefillEntry> prefill) {
    std::vector<CacheKey> there(frames_);
    boost::sort::spreadsort::integer_sort(there.begin(), there.end());
    std::fill(frames_.begin(), frames_.end(), kNoRow);
    rows_.clear();
    auto held = there.begin();
    for (const auto& [key, frame] : prefill) {
      RHIZOME_DCHECK(frame < frames_.size() && frames_[frame] == kNoRow);  // one key per frame
      frames_[frame] = key;
      while (held != there.end() && *held < key) ++held;
      if (held == there.end() || *held != key) rows_.push_back(key);
    }
    sweeps_.Add(rows_);
  }

  Sweeps sweeps_;
  std::vector<CacheKey> frames_;
  std::vector<CacheKey> rows_;
};

Trace Part(const Trace& trace, std::size_t first, std::size_t steps) {
  Trace part;
  for (std::size_t s = first; s < first + steps; ++s) part.AddStep(trace.step(s));
  return part;
}

}  // namespace

Result<ReplayTime> ReplayReads(Policy& policy, const Trace& trace, std::uint64_t row_bytes,
                               const ReadCost& cost) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace));
  Sweeps sweeps(row_bytes, cost);
  std::vector<CacheKey> rows;
  for (const auto& [key, frame] : policy.Prefill()) rows.push_back(key);
  sweeps.Add(rows);
  StepPlan plan;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    RHIZOME_RETURN_IF_ERROR(policy.Step(trace.step(s), plan));
    ListMisses(trace.step(s), plan, rows);
    sweeps.Add(rows);
  }
  return sweeps.time();
} catch (...) {
  return Fail(StatusOfException());
}

Result<SuperbatchReplay> ReplaySuperbatches(const Trace& trace, std::size_t superbatch,
                                            const PolicyOptions& options, Prior prior) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace, options.key_count));
  if (superbatch == 0 || superbatch > trace.steps()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "a superbatch of {} steps exceeds the trace, which has {}", superbatch, trace.steps())));
  }
  std::optional<ScheduleHistory> history;
  if (prior == Prior::kUses && TakesPrior(options.kind)) history.emplace(options.key_count);
  PolicyOptions chained = options;
  chained.history = history ? &*history : nullptr;
  PoolReplay pool(options);
  double first_seconds = 0;
  SuperbatchReplay replay;
  // For each whole superbatch: (1) creates a policy, linked to its predecessors by the history; (2)
  // replays its prefill and steps in the shared pool. The time of the first superbatch is
  // subtracted at the end if there are more.
  for (; replay.steps + superbatch <= trace.steps(); replay.steps += superbatch) {
    if (replay.steps == superbatch) first_seconds = pool.time().seconds;
    const Trace part = Part(trace, replay.steps, superbatch);
    RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<Policy> policy, MakePolicy(chained, part));
    RHIZOME_RETURN_IF_ERROR(pool.Play(*policy, part));
  }
  const bool has_second = replay.steps > superbatch;
  const double seconds = pool.time().seconds - (has_second ? first_seconds : 0);
  replay.step_seconds =
      seconds / static_cast<double>(has_second ? replay.steps - superbatch : replay.steps);
  replay.rows = pool.time().rows;
  return replay;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace internal
}  // namespace rhizome
