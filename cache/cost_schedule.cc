#include "rhizome/cache/cost_schedule.h"

#include <algorithm>
#include <bit>
#include <boost/sort/spreadsort/integer_sort.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "rhizome/cache/offline_schedule.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

// Costs differ by a factor of a hundred or so; a class is a half of the one above it.
constexpr std::size_t kClasses = 10;

constexpr CacheKey kNone = -1;

/// What reads of rows cost: those that stand close are one read, with what lies between.
class Sweep {
 public:
  Sweep(std::uint64_t row_bytes, const ReadCost& cost)
      : row_bytes_(static_cast<double>(row_bytes)),
        fixed_(cost.seconds_per_read),
        row_(cost.SecondsFor(row_bytes)),
        gap_bytes_(cost.gap_bytes()) {}

  /// Of reading `row` after `before`, the row that is read before it, or kNone.
  double SecondsAfter(CacheKey before, CacheKey row) const {
    return row_ + (Joined(before, row) ? Between(before, row) * row_ : fixed_);
  }

  bool Joined(CacheKey before, CacheKey row) const {
    return before != kNone && Between(before, row) * row_bytes_ <= static_cast<double>(gap_bytes_);
  }

  /// What reading `row` adds where those read before and after it are read anyway.
  double SecondsMore(CacheKey before, CacheKey row, CacheKey after) const {
    const double with = SecondsAfter(before, row);
    return after == kNone ? with : with + SecondsAfter(row, after) - SecondsAfter(before, after);
  }

  double most() const { return fixed_ + row_; }

 private:
  static double Between(CacheKey before, CacheKey row) {
    return static_cast<double>(row - before - 1);
  }

  const double row_bytes_;
  const double fixed_;
  const double row_;
  const std::uint64_t gap_bytes_;
};

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
  CostRounds(const Trace& trace, std::uint32_t frame_count, std::uint64_t key_count,
             std::uint64_t row_bytes, const ReadCost& cost)
      : trace_(trace),
        frame_count_(frame_count),
        sweep_(row_bytes, cost),
        next_(FindNextUses(trace, key_count)),
        sorted_(SortSteps(trace)) {
    for (std::size_t c = 0; c < kClasses; ++c)
      costs_.cost[c] = std::ldexp(1.0F, -static_cast<int>(c));
    costs_.class_of.resize(trace.keys.size());
  }

  Schedule Best() {
    best_ = BuildSchedule(trace_, next_, frame_count_, AccessCosts());
    if (ReadsEachRowOnce()) return std::move(best_);  // nothing can be saved
    least_ = Weigh(best_);
    Try();
    // Belady may keep a whole dense region, of which each row alone looks dear then; where all is
    // read, none of them does.
    Weigh({std::vector<Fate>(trace_.keys.size(), kBypass), {}});
    Try();
    Weigh(best_);
    Try();
    return std::move(best_);
  }

 private:
  bool ReadsEachRowOnce() const {
    const auto read = [](Fate fate) { return !IsHit(fate); };
    const auto last = [](const NextUse& next) { return next.access == kNever; };
    const std::ptrdiff_t rows = std::count_if(next_.begin(), next_.end(), last);
    return std::count_if(best_.fates.begin(), best_.fates.end(), read) +
               static_cast<std::ptrdiff_t>(best_.prefill.size()) ==
           rows;
  }

  /// A round: a schedule with the costs as they are, kept if it takes less time than the others.
  void Try() {
    Schedule schedule = BuildSchedule(trace_, next_, frame_count_, costs_);
    const double seconds = Weigh(schedule);
    if (seconds >= least_) return;
    least_ = seconds;
    best_ = std::move(schedule);
  }

  /// What the reads of `schedule` take. Sets the costs to what each access would cost beside them.
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
    CacheKey before = kNone;
    std::size_t next = 0;  // the first one after i that is read
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const CacheKey key = accesses[i].key;
      if (next <= i)
        for (next = i + 1; next < accesses.size() && !is_read(next);) ++next;
      const CacheKey after = next < accesses.size() ? accesses[next].key : kNone;
      costs_.class_of[accesses[i].access] = ClassOf(sweep_.SecondsMore(before, key, after));
      if (!is_read(i)) continue;
      seconds += sweep_.SecondsAfter(before, key);
      before = key;
    }
    return seconds;
  }

  double SecondsOfPrefill(const Schedule& schedule) const {
    std::vector<CacheKey> keys;
    keys.reserve(schedule.prefill.size());
    for (const auto& [key, frame] : schedule.prefill) keys.push_back(key);
    boost::sort::spreadsort::integer_sort(keys.begin(), keys.end());
    double seconds = 0;
    CacheKey before = kNone;
    for (const CacheKey key : keys) seconds += sweep_.SecondsAfter(std::exchange(before, key), key);
    return seconds;
  }

  /// Class c: a share of the dearest in (1 / 2^(c + 1), 1 / 2^c], the last one all below.
  std::uint8_t ClassOf(double seconds) const {
    const auto share = static_cast<float>(std::max(seconds, 0.0) / sweep_.most());
    const int halvings = 127 - static_cast<int>(std::bit_cast<std::uint32_t>(share) >> 23);
    return static_cast<std::uint8_t>(std::clamp<int>(halvings, 0, kClasses - 1));
  }

  const Trace& trace_;
  const std::uint32_t frame_count_;
  const Sweep sweep_;
  const std::vector<NextUse> next_;
  const std::vector<SortedAccess> sorted_;
  Schedule best_;
  double least_ = 0;
  AccessCosts costs_ = {.class_of = {}, .cost = std::vector<float>(kClasses)};
};

}  // namespace

std::unique_ptr<Policy> MakeCostSchedule(const Trace& trace, std::uint32_t frame_count,
                                         std::uint64_t key_count, std::uint64_t row_bytes,
                                         const ReadCost& cost) {
  return MakeScheduledPolicy(trace,
                             CostRounds(trace, frame_count, key_count, row_bytes, cost).Best());
}

ReplayTime ReplayReads(Policy& policy, const Trace& trace, std::uint64_t row_bytes,
                       const ReadCost& cost) {
  const Sweep sweep(row_bytes, cost);
  ReplayTime time;
  const auto read = [&](std::vector<CacheKey>& keys) {
    std::sort(keys.begin(), keys.end());
    CacheKey before = kNone;
    for (const CacheKey key : keys) {
      const bool joined = sweep.Joined(before, key);
      time.seconds += sweep.SecondsAfter(before, key);
      time.bytes += row_bytes;
      if (joined) time.bytes += static_cast<std::uint64_t>(key - before - 1) * row_bytes;
      if (!joined) ++time.reads;
      before = key;
    }
    time.rows += keys.size();
  };
  std::vector<CacheKey> keys;
  for (const auto& [key, frame] : policy.Prefill()) keys.push_back(key);
  read(keys);
  StepPlan plan;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    policy.Step(trace.step(s), plan);
    keys.clear();
    for (const std::uint32_t miss : plan.misses) keys.push_back(trace.step(s)[miss]);
    read(keys);
  }
  return time;
}

}  // namespace rhizome
