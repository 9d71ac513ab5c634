#include "cache/policy/offline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "cache/policy/basic_policies.h"
#include "cache/policy/pool_keys.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Earliest known access of each key, for the backward pass. It is a table by key if there are few
/// keys per access, else a hash table with open addressing, so that memory is O(accesses) in both
/// cases.
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
    std::size_t slot = static_cast<std::size_t>(key);
    if (!direct_) keys_[slot = Slot(key)] = key;
    return std::exchange(uses_[slot], use);
  }

  /// Returns the use of `key`, or a default one if none was set.
  NextUse Find(CacheKey key) const {
    if (direct_) return uses_[static_cast<std::size_t>(key)];
    const std::size_t slot = Slot(key);
    return keys_[slot] == key ? uses_[slot] : NextUse();
  }

 private:
  /// Returns the slot of the key, or the slot where it would be inserted.
  std::size_t Slot(CacheKey key) const {
    const std::size_t mask = keys_.size() - 1;
    std::uint64_t hash = static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15ull;
    std::size_t slot = (hash ^ (hash >> 32)) & mask;
    while (keys_[slot] != key && keys_[slot] != -1) slot = (slot + 1) & mask;
    return slot;
  }

  const bool direct_;
  std::vector<NextUse> uses_;
  std::vector<CacheKey> keys_;
};

/// Builds a schedule in one forward pass. For each step it (1) drops the keys that the step uses
/// from the buckets; (2) adds each of them again by its next use, or as an idle key if it has no
/// next use but a weight, and frees the frames of the others; (3) evicts the least valuable keys
/// until the pool fits; (4) assigns frames to the keys that were read and kept. At the end the
/// untouched frames are prefilled with keys that are used once.
///
/// Invariants between steps: (1) fates[a] is a hit in frame f exactly if the key of the later
/// access a is in f now; (2) those keys are the ones in the buckets; together with the idle keys
/// there are at most frame_count of them; (3) every other frame is in `free_`, in `unused_`, or
/// untouched: [untouched_, frame_count).
///
/// Prefill. A key that would be read into a frame from which nothing has been read yet is prefilled
/// into it instead: the frame was idle until then, so nothing is displaced and one read replaces
/// another. This applies to untouched frames, and to frames in `unused_`, whose initial key was
/// evicted before it was used. The access must be the key's first use. For untouched frames it
/// always is, because no key that is needed again is refused or evicted while such frames exist.
/// Frames that are still untouched at the end are filled with keys that are used only once.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Trace& trace, const KnownUses& uses, std::uint32_t frame_count,
                  const AccessCosts& costs, const ScheduleStart& start)
      : trace_(trace),
        uses_(uses),
        frame_count_(std::min(frame_count, kMaxFrames)),
        costs_(costs),
        start_(start),
        buckets_(trace, costs),
        idle_(costs),
        fates_(trace.keys.size(), kBypass) {
    if (!start.prior.weight.empty()) is_repeat_.resize(trace.keys.size());
  }

  Schedule Build() {
    TakeHeld();
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      buckets_.Drop(s);
      Offer(s);
      Shrink(s);
      PlaceCandidates(s);
      // Invariants (2) and (3): every touched frame holds a key or is free.
      RHIZOME_DCHECK(size() <= frame_count_ &&
                     size() + free_.size() + unused_.size() == untouched_);
    }
    PrefillSingleUses();
    for (FrameId f = 0; f < held_at_.size(); ++f)
      if (stays_[f]) prefill_.emplace_back(HeldKey(f), f);
    idle_.Clear();
    HeldKeys left = Left();
    return {std::move(fates_), std::move(prefill_), std::move(left)};
  }

 private:
  AccessId begin(std::size_t step) const { return static_cast<AccessId>(trace_.offsets[step]); }
  std::uint64_t size() const { return buckets_.size() + idle_.size(); }
  bool has_prior() const { return !start_.prior.weight.empty(); }

  /// Returns the key that `frame` held at the start.
  CacheKey HeldKey(FrameId frame) const { return start_.held->keys[held_at_[frame]]; }
  std::size_t HeldClass(FrameId frame) const {
    return std::min<std::size_t>(start_.held->ClassOf(held_at_[frame]), costs_.cost.size() - 1);
  }

  void TakeHeld() {
    if (start_.held == nullptr) return;
    for (std::size_t i = 0; i < start_.held->keys.size() && untouched_ < frame_count_; ++i) {
      const CacheKey key = start_.held->keys[i];
      if (start_.prior.WeightOf(key) == 0) continue;
      const FrameId frame = untouched_++;
      held_at_.push_back(static_cast<std::uint32_t>(i));
      const NextUse first = uses_.first[i];
      if (first.access == kNever) {
        idle_.AddHeld(start_.prior.ChanceOf(key), frame, HeldClass(frame));
      } else {
        buckets_.Add(first);
        fates_[first.access] = HitFate(frame);
      }
    }
    idle_.SortHeld();
    stays_.assign(held_at_.size(), true);
    is_used_.assign(held_at_.size(), false);
  }

  /// Adds every key of the step that may remain in the pool, whether or not it is there already,
  /// and frees the frames of the other keys.
  void Offer(std::size_t step) {
    for (AccessId a = begin(step); a < begin(step + 1); ++a) {
      const NextUse next = uses_.next[a];
      const Fate fate = fates_[a];
      RHIZOME_DCHECK(fate != kCandidate);  // placed or evicted in the step that read it
      if (IsHit(fate) && FrameOf(fate) < is_used_.size()) is_used_[FrameOf(fate)] = true;
      if (next.access != kNever) {
        buckets_.Add(next);
        fates_[next.access] = IsHit(fate) ? fate : kCandidate;
        if (has_prior()) is_repeat_[next.access] = true;
      } else if (start_.prior.WeightOf(trace_.keys[a]) > 0) {
        idle_.Add(start_.prior.ChanceOf(trace_.keys[a]), a, costs_.ClassOf(a));
        if (!IsHit(fate)) fates_[a] = kCandidate;
      } else if (IsHit(fate)) {
        free_.push_back(FrameOf(fate));
      }
    }
  }

  /// Evicts keys until the pool fits. If there is only one class, idle keys are always worth less.
  void Shrink(std::size_t step) {
    while (size() > frame_count_) {
      const std::uint64_t excess = size() - frame_count_;
      LeastWorth idle;
      if (idle_.size() > 0) idle = idle_.Least(trace_.steps() - step);
      LeastWorth needed;
      if (buckets_.size() > 0 && (idle_.size() == 0 || costs_.cost.size() > 1))
        needed = buckets_.Least(step);
      if (idle_.size() > 0 && idle.worth <= needed.worth) {
        EvictIdle(idle_.Remove(idle.cost_class));
      } else {
        buckets_.Remove(needed, excess, [this](AccessId access) { Evict(fates_[access]); });
      }
    }
  }

  void Evict(Fate& fate) {
    if (fate != kCandidate) Free(FrameOf(fate));
    fate = kBypass;
  }

  void EvictIdle(const IdleKeys::Key& key) {
    if (key.is_held) return Free(key.id);
    Fate& fate = fates_[key.id];
    if (fate == kCandidate) {
      fate = kBypass;
    } else {
      Free(FrameOf(fate));
    }
  }

  void Free(FrameId frame) {
    const bool unused = frame < is_used_.size() && !is_used_[frame];
    if (unused) stays_[frame] = false;
    (unused ? unused_ : free_).push_back(frame);
  }

  void PlaceCandidates(std::size_t step) {
    for (AccessId a = begin(step); a < begin(step + 1); ++a) {
      const NextUse next = uses_.next[a];
      if (fates_[next.access == kNever ? a : next.access] != kCandidate) continue;
      const bool prefilled = !has_prior() || !is_repeat_[a];
      if (prefilled && (!unused_.empty() || untouched_ < frame_count_)) {
        Prefill(a);
      } else {
        fates_[a] = InsertFate(TakeFree());
      }
      if (next.access != kNever) fates_[next.access] = HitFate(FrameOf(fates_[a]));
    }
  }

  FrameId TakeFree() {
    if (free_.empty()) return TakeUnused();
    const FrameId frame = free_.back();
    free_.pop_back();
    return frame;
  }

  /// Returns a frame from which nothing has been read yet.
  FrameId TakeUnused() {
    if (unused_.empty()) {
      RHIZOME_DCHECK(untouched_ < frame_count_);
      return untouched_++;
    }
    const FrameId frame = unused_.back();
    unused_.pop_back();
    is_used_[frame] = true;
    return frame;
  }

  void Prefill(AccessId access) {
    const FrameId frame = TakeUnused();
    prefill_.emplace_back(trace_.keys[access], frame);
    fates_[access] = HitFate(frame);
  }

  void PrefillSingleUses() {
    for (AccessId a = 0; a < fates_.size() && untouched_ < frame_count_; ++a) {
      if (fates_[a] == kBypass) Prefill(a);
    }
  }

  /// Returns the keys with a weight that are in the pool at the end.
  HeldKeys Left() const {
    HeldKeys left;
    if (!has_prior()) return left;
    std::vector<AccessId> last(untouched_, kNever);  // by frame: last access to its current key
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      // A step's reads may be placed in frames that the same step hit.
      for (AccessId a = begin(s); a < begin(s + 1); ++a)
        if (IsHit(fates_[a])) last[FrameOf(fates_[a])] = a;
      for (AccessId a = begin(s); a < begin(s + 1); ++a)
        if (IsInsert(fates_[a])) last[FrameOf(fates_[a])] = a;
    }
    left.keys.reserve(untouched_);
    const bool classes = costs_.cost.size() > 1;
    const auto add = [&](CacheKey key, std::size_t cost_class) {
      left.keys.push_back(key);
      if (classes) left.classes.push_back(static_cast<std::uint8_t>(cost_class));
    };
    for (FrameId f = 0; f < held_at_.size(); ++f)
      if (stays_[f] && last[f] == kNever) add(HeldKey(f), HeldClass(f));
    for (AccessId a = 0; a < fates_.size(); ++a) {
      const CacheKey key = trace_.keys[a];
      if (fates_[a] >= kCandidate || last[FrameOf(fates_[a])] != a) continue;
      if (start_.prior.WeightOf(key) > 0) add(key, costs_.ClassOf(a));
    }
    return left;
  }

  const Trace& trace_;
  const KnownUses& uses_;
  const std::uint32_t frame_count_;
  const AccessCosts& costs_;
  const ScheduleStart& start_;
  NextUseBuckets buckets_;
  IdleKeys idle_;
  std::vector<Fate> fates_;             // by access
  std::vector<std::uint32_t> held_at_;  // by frame: position of its initial key
  // by frame with an initial key: keeps it until it is used, or to the end
  std::vector<bool> stays_;
  std::vector<bool> is_used_;  // by frame with an initial key: whether the frame has been read from
  std::vector<FrameId> free_;
  std::vector<FrameId> unused_;
  FrameId untouched_ = 0;
  std::vector<bool> is_repeat_;  // by access: the key was requested before; only with a prior
  PrefillList prefill_;
};

}  // namespace

Result<KnownUses> FindUses(const Trace& trace, std::uint64_t key_count,
                           std::span<const CacheKey> keys) {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace, key_count));
  if (trace.keys.size() >= kNever || trace.steps() >= kNever) {
    return Fail(Status::InvalidArgument(
        fmt::format("a trace of {} accesses in {} steps is too long for one schedule",
                    trace.keys.size(), trace.steps())));
  }
  KnownUses uses;
  std::vector<NextUse>& next = uses.next;
  next.resize(trace.keys.size());
  EarliestUses earliest(trace.keys.size(), key_count);
  for (std::size_t s = trace.steps(); s > 0; --s) {
    const StepId step = static_cast<StepId>(s - 1);
    for (std::uint64_t a = trace.offsets[s]; a > trace.offsets[step]; --a) {
      const AccessId access = static_cast<AccessId>(a - 1);
      const CacheKey key = trace.keys[access];
      next[access] = earliest.Exchange(key, {access, step});
      if (next[access].access != kNever && next[access].step == step) {
        return Fail(Status::InvalidArgument(
            fmt::format("step {} of a trace requests key {} twice", step, key)));
      }
    }
  }
  uses.first.reserve(keys.size());
  for (const CacheKey key : keys) uses.first.push_back(earliest.Find(key));
  return uses;
}

Schedule BuildSchedule(const Trace& trace, const KnownUses& uses, std::uint32_t frame_count,
                       const AccessCosts& costs, const ScheduleStart& start) {
  RHIZOME_DCHECK(uses.next.size() == trace.keys.size());
  RHIZOME_DCHECK(start.held == nullptr || (uses.first.size() == start.held->keys.size() &&
                                           start.held->keys.size() < kNever));
  RHIZOME_DCHECK(costs.class_of.empty() || costs.class_of.size() == trace.keys.size());
  RHIZOME_DCHECK(
      std::all_of(costs.cost.begin(), costs.cost.end(), [](float cost) { return cost > 0; }));
  return ScheduleBuilder(trace, uses, frame_count, costs, start).Build();
}

}  // namespace internal
}  // namespace rhizome
