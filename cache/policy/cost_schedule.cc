#include "cache/policy/cost_schedule.h"

#include <algorithm>
#include <bit>
#include <boost/sort/spreadsort/integer_sort.hpp>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "cache/policy/offline_schedule.h"
#include "cache/policy/schedule_history.h"
#include "cache/policy/sweep.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

// Read costs differ by a factor of about a hundred. Each class costs half as much as the previous
// one, so ten classes span a factor of 512.
constexpr std::size_t kClasses = 10;

/// One access of a step whose accesses are sorted by key.
struct SortedAccess {
  CacheKey key;
  AccessId access;
  bool operator<(const SortedAccess& other) const { return key < other.key; }
};

std::vector<SortedAccess> SortSteps(const Trace& trace) {
  std::vector<SortedAccess> sorted(trace.keys.size());
  for (std::size_t a = 0; a < sorted.size(); ++a)
    sorted[a] = {trace.keys[a], static_cast<AccessId>(a)};
  const auto shifted = [](const SortedAccess& one, unsigned bits) { return one.key >> bits; };
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    boost::sort::spreadsort::integer_sort(
        sorted.begin() + static_cast<std::ptrdiff_t>(trace.offsets[s]),
        sorted.begin() + static_cast<std::ptrdiff_t>(trace.offsets[s + 1]), shifted);
  }
  return sorted;
}

class CostRounds {
 public:
  CostRounds(const Trace& trace, KnownUses uses, std::uint32_t frame_count, std::uint64_t row_bytes,
             const ReadCost& cost, const ScheduleStart& start)
      : trace_(trace),
        frame_count_(frame_count),
        sweep_(row_bytes, cost),
        uses_(std::move(uses)),
        start_(start),
        sorted_(SortSteps(trace)) {
    if (start.held != nullptr) held_ = start.held->keys;
    boost::sort::spreadsort::integer_sort(held_.begin(), held_.end());
    RHIZOME_DCHECK(trace.offsets.back() == sorted_.size());
    for (std::size_t c = 0; c < kClasses; ++c)
      costs_.cost[c] = std::ldexp(1.0F, -static_cast<int>(c));
    costs_.class_of.resize(trace.keys.size());
  }

  /// Builds schedules in rounds and returns the fastest one by the cost model:
  /// 1. Belady's schedule. If it reads each row at most once, nothing can be saved and it is final.
  /// 2. A schedule with the costs next to the reads of (1).
  /// 3. A schedule with the costs next to reads of all rows.
  /// 4. A schedule with the costs next to the reads of the best schedule so far.
  Schedule Best() {
    best_ = BuildSchedule(trace_, uses_, frame_count_, AccessCosts(), start_);
    if (ReadsEachRowOnce()) return std::move(best_);  // nothing can be saved
    least_ = Weigh(best_);
    Try();
    // Belady may keep a whole dense region. Each of its rows then looks expensive, because its
    // neighbours are not read. Costs measured next to reads of all rows correct that.
    Weigh({std::vector<Fate>(trace_.keys.size(), kBypass), {}, {}});
    Try();
    Weigh(best_);
    Try();
    return std::move(best_);
  }

 private:
  /// Returns whether each row is read once, or not at all if the pool held it at the start.
  bool ReadsEachRowOnce() const {
    const auto read = [](Fate fate) { return !IsHit(fate); };
    const auto last = [](const NextUse& next) { return next.access == kNever; };
    const std::ptrdiff_t rows = std::count_if(uses_.next.begin(), uses_.next.end(), last);
    const std::ptrdiff_t held =
        std::count_if(uses_.first.begin(), uses_.first.end(), std::not_fn(last));
    return std::count_if(best_.fates.begin(), best_.fates.end(), read) +
               static_cast<std::ptrdiff_t>(PrefillReads(best_).size()) ==
           rows - held;
  }

  /// Runs one round: builds a schedule with the current costs and keeps it if it is faster than the
  /// best so far.
  void Try() {
    Schedule schedule = BuildSchedule(trace_, uses_, frame_count_, costs_, start_);
    const double seconds = Weigh(schedule);
    RHIZOME_DCHECK(seconds >= 0);
    if (seconds >= least_) return;
    least_ = seconds;
    best_ = std::move(schedule);
  }

  /// Returns the seconds that the reads of `schedule` take. Sets the cost of each access to the
  /// time that reading its row would add to these reads.
  double Weigh(const Schedule& schedule) {
    double seconds = SecondsOfPrefill(schedule);
    for (std::size_t s = 0; s < trace_.steps(); ++s) seconds += WeighStep(schedule, s);
    return seconds;
  }

  double WeighStep(const Schedule& schedule, std::size_t step) {
    const auto accesses = std::span(sorted_).subspan(
        trace_.offsets[step], trace_.offsets[step + 1] - trace_.offsets[step]);
    const auto is_read = [&](std::size_t i) { return !IsHit(schedule.fates[accesses[i].access]); };
    double seconds = 0;
    CacheKey before = kNoRow;
    std::size_t next = 0;  // first access after i that is read
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const CacheKey key = accesses[i].key;
      if (next <= i)
        for (next = i + 1; next < accesses.size() && !is_read(next);) ++next;
      const CacheKey after = next < accesses.size() ? accesses[next].key : kNoRow;
      costs_.class_of[accesses[i].access] = ClassOf(sweep_.SecondsMore(before, key, after));
      if (!is_read(i)) continue;
      seconds += sweep_.SecondsAfter(before, key);
      before = key;
    }
    return seconds;
  }

  /// Returns the keys that are read before the first step, in ascending order.
  std::vector<CacheKey> PrefillReads(const Schedule& schedule) const {
    std::vector<CacheKey> keys;
    keys.reserve(schedule.prefill.size());
    for (const auto& [key, frame] : schedule.prefill) keys.push_back(key);
    boost::sort::spreadsort::integer_sort(keys.begin(), keys.end());
    if (held_.empty()) return keys;
    std::vector<CacheKey> reads;
    std::set_difference(keys.begin(), keys.end(), held_.begin(), held_.end(),
                        std::back_inserter(reads));
    return reads;
  }

  double SecondsOfPrefill(const Schedule& schedule) const {
    double seconds = 0;
    CacheKey before = kNoRow;
    for (const CacheKey key : PrefillReads(schedule))
      seconds += sweep_.SecondsAfter(std::exchange(before, key), key);
    return seconds;
  }

  /// Returns the cost class of a read. Class c holds costs whose ratio to the maximum is in (1 /
  /// 2^(c + 1), 1 / 2^c]; the last class holds all smaller ones.
  std::uint8_t ClassOf(double seconds) const {
    const auto share = static_cast<float>(std::max(seconds, 0.0) / sweep_.most());
    const int halvings = 127 - static_cast<int>(std::bit_cast<std::uint32_t>(share) >> 23);
    return static_cast<std::uint8_t>(std::clamp<int>(halvings, 0, kClasses - 1));
  }

  const Trace& trace_;
  const std::uint32_t frame_count_;
  const Sweep sweep_;
  const KnownUses uses_;
  const ScheduleStart start_;
  std::vector<CacheKey> held_;  // keys that the pool holds at the start, ascending
  const std::vector<SortedAccess> sorted_;
  Schedule best_;
  double least_ = 0;
  AccessCosts costs_ = {.class_of = {}, .cost = std::vector<float>(kClasses)};
};

}  // namespace

Result<std::unique_ptr<Policy>> MakeCostSchedule(const Trace& trace, std::uint32_t frame_count,
                                                 std::uint64_t key_count, std::uint64_t row_bytes,
                                                 const ReadCost& cost,
                                                 ScheduleHistory* history) try {
  const HeldKeys nothing;
  const HeldKeys& held = history == nullptr ? nothing : history->held();
  RHIZOME_ASSIGN_OR_RETURN(KnownUses uses, FindUses(trace, key_count, held.keys));
  if (history != nullptr) history->Count(trace);
  CostRounds rounds(trace, std::move(uses), frame_count, row_bytes, cost,
                    history == nullptr ? ScheduleStart() : history->start());
  Schedule best = rounds.Best();
  if (history != nullptr) history->SetHeld(std::exchange(best.held, {}));
  return MakeScheduledPolicy(trace, std::move(best));
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace internal
}  // namespace rhizome
