#include "rhizome/cache/offline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/sort/spreadsort/integer_sort.hpp>

#include "rhizome/cache/step_set.h"

namespace rhizome::inline internal {
namespace {

/// Hashes a sequence of keys; order matters.
std::uint64_t HashKeys(std::span<const CacheKey> keys) {
  std::uint64_t hash = keys.size();
  for (const CacheKey key : keys) {
    hash = (hash ^ static_cast<std::uint64_t>(key)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

/// The earliest known access of each key, for the backward pass. This is a table by key where there
/// are few keys per access, else a hash table with open addressing, so that memory is O(accesses)
/// either way.
class EarliestUses {
 public:
  EarliestUses(std::size_t accesses, std::uint64_t key_count)
      : direct_(key_count <= 4 * static_cast<std::uint64_t>(accesses) + 1024) {
    const std::size_t slots = direct_ ? key_count : std::bit_ceil(2 * accesses + 1);
    uses_.resize(slots);
    if (!direct_) keys_.assign(slots, -1);
  }

  /// Sets the use of `key` and returns the previous one.
  NextUse Exchange(CacheKey key, NextUse use) {
    return std::exchange(uses_[direct_ ? static_cast<std::size_t>(key) : Slot(key)], use);
  }

 private:
  std::size_t Slot(CacheKey key) {
    const std::size_t mask = keys_.size() - 1;
    std::uint64_t hash = static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15ull;
    std::size_t slot = (hash ^ (hash >> 32)) & mask;
    while (keys_[slot] != key && keys_[slot] != -1) slot = (slot + 1) & mask;
    keys_[slot] = key;
    return slot;
  }

  const bool direct_;
  std::vector<NextUse> uses_;
  std::vector<CacheKey> keys_;
};

/// The keys in the pool, bucketed by the step of their next use and by the cost class of reading
/// them then. A key is named by its next access, so the keys needed in a step occupy that step's
/// slice of `members_`, ordered by class, and nothing is allocated while the builder runs.
class NextUseBuckets {
 public:
  NextUseBuckets(const Trace& trace, const AccessCosts& costs)
      : costs_(costs),
        classes_(costs.cost.size()),
        members_(trace.keys.size()),
        starts_(trace.steps() * classes_),
        counts_(trace.steps() * classes_, 0),
        occupied_(classes_, StepSet(trace.steps())) {
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      std::vector<AccessId> sizes(classes_, 0);
      for (std::uint64_t a = trace.offsets[s]; a < trace.offsets[s + 1]; ++a) ++sizes[ClassOf(a)];
      auto start = static_cast<AccessId>(trace.offsets[s]);
      for (std::size_t c = 0; c < classes_; ++c)
        starts_[s * classes_ + c] = std::exchange(start, start + sizes[c]);
    }
  }

  void Add(NextUse use) {
    const std::size_t c = ClassOf(use.access);
    const std::size_t bucket = use.step * classes_ + c;
    if (counts_[bucket] == 0) occupied_[c].Insert(use.step);
    RHIZOME_DCHECK(starts_[bucket] + counts_[bucket] < members_.size());
    members_[starts_[bucket] + counts_[bucket]++] = use.access;
    ++size_;
  }

  /// Removes keys until `size` are left and calls visit(access) for each. It empties the bucket
  /// whose keys are worth least in step `now`, then the next one.
  template <typename Visit>
  void Shrink(std::uint64_t size, std::size_t now, const Visit& visit) {
    while (size_ > size) {
      const auto [c, step] = WorstBucket(now);
      const std::size_t bucket = step * classes_ + c;
      std::uint32_t& count = counts_[bucket];
      RHIZOME_DCHECK(step > now && count != 0);
      const auto gone = static_cast<std::uint32_t>(std::min<std::uint64_t>(size_ - size, count));
      for (std::uint32_t i = 0; i < gone; ++i) visit(members_[starts_[bucket] + --count]);
      if (count == 0) occupied_[c].Erase(step);
      size_ -= gone;
    }
  }

  std::uint64_t size() const { return size_; }

  /// Removes all keys that are needed in `step`.
  void Drop(std::size_t step) {
    for (std::size_t c = 0; c < classes_; ++c) {
      const std::size_t bucket = step * classes_ + c;
      if (counts_[bucket] == 0) continue;
      size_ -= std::exchange(counts_[bucket], 0);
      occupied_[c].Erase(step);
    }
  }

 private:
  /// Within a class the keys that are needed last are worth least, so one bucket of each class is
  /// compared.
  std::pair<std::size_t, std::size_t> WorstBucket(std::size_t now) const {
    std::pair<std::size_t, std::size_t> worst;
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t c = 0; c < classes_; ++c) {
      if (occupied_[c].empty()) continue;
      const std::size_t step = occupied_[c].Max();
      const float worth = costs_.cost[c] / static_cast<float>(step - now);
      if (worth >= least) continue;
      least = worth;
      worst = {c, step};
    }
    return worst;
  }

  std::size_t ClassOf(std::uint64_t access) const {
    return costs_.class_of.empty() ? 0 : costs_.class_of[access];
  }

  const AccessCosts& costs_;
  const std::size_t classes_;
  std::vector<AccessId> members_;
  std::vector<AccessId> starts_;       // by step and class, into members_
  std::vector<std::uint32_t> counts_;  // by step and class
  std::vector<StepSet> occupied_;      // by class
  std::uint64_t size_ = 0;
};

/// Builds a schedule in one forward pass. For each step it (1) drops the keys that the step uses
/// from the buckets; (2) offers each of them again by its next use, and frees the frames of keys
/// that are not used again; (3) evicts the keys that are worth least until the pool fits; (4) gives
/// frames to the keys that were read and kept. At the end the untouched frames are prefilled with
/// keys that are used once.
///
/// Invariants between steps: (1) fates[a] is a hit in frame f exactly if the key of the later
/// access a is in f now; (2) those keys are the ones in the buckets, at most frame_count of them;
/// (3) every other frame is in `free_`, or untouched: [untouched_, frame_count).
///
/// Prefill. A key that would be read into an untouched frame is prefilled into it instead: the
/// frame was idle until then, so nothing is displaced and one read replaces another. The access is
/// the key's first use, because no key that is needed again is refused or evicted while there are
/// untouched frames. Frames that stay untouched to the end take keys that are used only once.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Trace& trace, std::span<const NextUse> next, std::uint32_t frame_count,
                  const AccessCosts& costs)
      : trace_(trace),
        frame_count_(std::min(frame_count, kMaxFrames)),
        next_(next),
        buckets_(trace, costs),
        fates_(trace.keys.size(), kBypass) {}

  Schedule Build() {
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      buckets_.Drop(s);
      Offer(s);
      buckets_.Shrink(frame_count_, s, [this](AccessId access) { Evict(access); });
      PlaceCandidates(s);
      // (2) and (3): frames that were touched have a key of the buckets, or are free.
      RHIZOME_DCHECK(buckets_.size() <= frame_count_ &&
                     buckets_.size() + free_.size() == untouched_);
    }
    PrefillSingleUses();
    return {std::move(fates_), std::move(prefill_)};
  }

 private:
  AccessId begin(std::size_t step) const { return static_cast<AccessId>(trace_.offsets[step]); }

  /// Enters every key of the step that is needed again, whether or not it is in the pool, and frees
  /// the frames of the other keys.
  void Offer(std::size_t step) {
    for (AccessId a = begin(step); a < begin(step + 1); ++a) {
      const NextUse next = next_[a];
      const Fate fate = fates_[a];
      RHIZOME_DCHECK(fate != kCandidate);  // placed or evicted in the step that read it
      if (next.access != kNever) {
        buckets_.Add(next);
        fates_[next.access] = IsHit(fate) ? fate : kCandidate;
      } else if (IsHit(fate)) {
        free_.push_back(FrameOf(fate));
      }
    }
  }

  void Evict(AccessId access) {
    Fate& fate = fates_[access];
    if (fate != kCandidate) free_.push_back(FrameOf(fate));
    fate = kBypass;
  }

  void PlaceCandidates(std::size_t step) {
    for (AccessId a = begin(step); a < begin(step + 1); ++a) {
      const NextUse next = next_[a];
      if (next.access == kNever || fates_[next.access] != kCandidate) continue;
      if (untouched_ < frame_count_) {
        Prefill(a);
      } else {
        RHIZOME_DCHECK(!free_.empty());
        fates_[a] = InsertFate(free_.back());
        free_.pop_back();
      }
      fates_[next.access] = HitFate(FrameOf(fates_[a]));
    }
  }

  void Prefill(AccessId access) {
    prefill_.emplace_back(trace_.keys[access], untouched_);
    fates_[access] = HitFate(untouched_++);
  }

  void PrefillSingleUses() {
    for (AccessId a = 0; a < fates_.size() && untouched_ < frame_count_; ++a) {
      if (fates_[a] == kBypass) Prefill(a);
    }
  }

  const Trace& trace_;
  const std::uint32_t frame_count_;
  const std::span<const NextUse> next_;
  NextUseBuckets buckets_;
  std::vector<Fate> fates_;  // by access
  std::vector<FrameId> free_;
  FrameId untouched_ = 0;
  PrefillList prefill_;
};

PrefillList Sorted(PrefillList prefill) {
  boost::sort::spreadsort::integer_sort(
      prefill.begin(), prefill.end(),
      [](const PrefillEntry& entry, unsigned bits) { return entry.first >> bits; });
  return prefill;
}

constexpr StepId kNoStep = std::numeric_limits<StepId>::max();

class ScheduledPolicy final : public Policy {
 public:
  ScheduledPolicy(const Trace& trace, Schedule schedule)
      : fates_(std::move(schedule.fates)),
        offsets_(trace.offsets),
        prefill_(Sorted(std::move(schedule.prefill))),
        last_use_(fates_.size()),
        needed_(trace.steps() + 1, 0) {
    hashes_.reserve(trace.steps());
    for (std::size_t s = 0; s < trace.steps(); ++s) hashes_.push_back(HashKeys(trace.step(s)));
    FindLastUses();
    RHIZOME_DCHECK(std::adjacent_find(prefill_.begin(), prefill_.end(),
                                      [](const PrefillEntry& a, const PrefillEntry& b) {
                                        return a.first >= b.first;
                                      }) == prefill_.end());
  }

  std::span<const PrefillEntry> Prefill() const override { return prefill_; }
  std::uint32_t frames_needed() const override { return needed_[step_]; }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    plan.Clear();
    if (step_ >= hashes_.size() || HashKeys(keys) != hashes_[step_]) {
      return Status::InvalidArgument(fmt::format(
          "the keys are not those of step {} of the {} that the schedule was built from", step_,
          hashes_.size()));
    }
    const std::uint64_t first = offsets_[step_++];
    const Fate* fates = fates_.data() + first;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if (IsHit(fates[i])) {
        plan.hits.push_back({i, FrameOf(fates[i])});
      } else {
        plan.misses.push_back(i);
        if (IsInsert(fates[i])) plan.inserts.push_back({i, FrameOf(fates[i])});
      }
      if (last_use_[first + i]) plan.done.push_back(FrameOf(fates[i]));
    }
    return Status::Ok();
  }

 private:
  /// Goes backwards over the schedule to find, for each access, whether its frame's content is used
  /// after the step, and for each step how many frames hold content that is used later.
  void FindLastUses() {
    const FrameId bound = FrameBound();
    std::vector<bool> awaited(bound);
    std::vector<StepId> filled(bound, kNoStep);  // by frame: the step that was seen to fill it
    std::uint32_t count = 0;
    for (std::size_t s = hashes_.size(); s > 0; --s) {
      const StepId step = static_cast<StepId>(s - 1);
      for (std::uint64_t a = offsets_[step]; a < offsets_[s]; ++a) {
        if (!IsInsert(fates_[a])) continue;
        const FrameId frame = FrameOf(fates_[a]);
        filled[frame] = step;
        last_use_[a] = !awaited[frame];  // inserted for a later hit, but replaced before it
        RHIZOME_DCHECK(!awaited[frame] || count != 0);
        if (awaited[frame]) --count;
        awaited[frame] = false;
      }
      for (std::uint64_t a = offsets_[step]; a < offsets_[s]; ++a) {
        if (!IsHit(fates_[a]) || awaited[FrameOf(fates_[a])]) continue;
        awaited[FrameOf(fates_[a])] = true;
        ++count;
        last_use_[a] = filled[FrameOf(fates_[a])] != step;
      }
      RHIZOME_DCHECK(count <= bound);
      needed_[step] = std::max(needed_[s], count);
    }
  }

  FrameId FrameBound() const {
    FrameId bound = 0;
    for (const Fate fate : fates_)
      if (fate < kCandidate) bound = std::max(bound, FrameOf(fate) + 1);
    return bound;
  }

  const std::vector<Fate> fates_;  // by access
  const std::vector<std::uint64_t> offsets_;
  std::vector<std::uint64_t> hashes_;  // by step
  const PrefillList prefill_;
  // by access: nothing asks for its frame's content after the step
  std::vector<bool> last_use_;
  std::vector<std::uint32_t> needed_;  // by step: frames_needed() before it
  std::size_t step_ = 0;
};

}  // namespace

Result<std::vector<NextUse>> FindNextUses(const Trace& trace, std::uint64_t key_count) {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace, key_count));
  if (trace.keys.size() >= kNever || trace.steps() >= kNever) {
    return Fail(Status::InvalidArgument(
        fmt::format("a trace of {} accesses in {} steps is too long for one schedule",
                    trace.keys.size(), trace.steps())));
  }
  std::vector<NextUse> next(trace.keys.size());
  EarliestUses earliest(trace.keys.size(), key_count);
  for (std::size_t s = trace.steps(); s > 0; --s) {
    const StepId step = static_cast<StepId>(s - 1);
    for (std::uint64_t a = trace.offsets[s]; a > trace.offsets[step]; --a) {
      const AccessId access = static_cast<AccessId>(a - 1);
      const CacheKey key = trace.keys[access];
      next[access] = earliest.Exchange(key, {access, step});
      if (next[access].access != kNever && next[access].step == step) {
        return Fail(Status::InvalidArgument(
            fmt::format("step {} of a trace asks for key {} twice", step, key)));
      }
    }
  }
  return next;
}

Schedule BuildSchedule(const Trace& trace, std::span<const NextUse> next, std::uint32_t frame_count,
                       const AccessCosts& costs) {
  RHIZOME_DCHECK(next.size() == trace.keys.size());
  RHIZOME_DCHECK(costs.class_of.empty() || costs.class_of.size() == trace.keys.size());
  RHIZOME_DCHECK(
      std::all_of(costs.cost.begin(), costs.cost.end(), [](float cost) { return cost > 0; }));
  return ScheduleBuilder(trace, next, frame_count, costs).Build();
}

std::unique_ptr<Policy> MakeScheduledPolicy(const Trace& trace, Schedule schedule) {
  return std::make_unique<ScheduledPolicy>(trace, std::move(schedule));
}

}  // namespace rhizome::inline internal
