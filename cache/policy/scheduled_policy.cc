#include <fmt/format.h>

#include <algorithm>
#include <boost/sort/spreadsort/integer_sort.hpp>

#include "cache/policy/frame_table.h"
#include "cache/policy/offline_schedule.h"
#include "cache/policy/sweep.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Hashes a sequence of keys. The order matters.
std::uint64_t HashKeys(std::span<const CacheKey> keys) {
  std::uint64_t hash = keys.size();
  for (const CacheKey key : keys) {
    hash = (hash ^ static_cast<std::uint64_t>(key)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Sorts a list of distinct keys with a table over all keys up to `last`, the maximum.
PrefillList SortedByTable(PrefillList prefill, CacheKey last) {
  std::vector<FrameId> frame_of(static_cast<std::size_t>(last) + 1, kNoFrame);
  for (const auto& [key, frame] : prefill) frame_of[static_cast<std::size_t>(key)] = frame;
  auto out = prefill.begin();
  for (std::size_t key = 0; key < frame_of.size(); ++key)
    if (frame_of[key] != kNoFrame) *out++ = {static_cast<CacheKey>(key), frame_of[key]};
  RHIZOME_DCHECK(out == prefill.end());
  return prefill;
}

PrefillList Sorted(PrefillList prefill) {
  CacheKey last = 0;
  for (const auto& [key, frame] : prefill) last = std::max(last, key);
  // Common case: a pool that holds a large share of all rows has such a list for every superbatch.
  if (static_cast<std::uint64_t>(last) / 4 < prefill.size())
    return SortedByTable(std::move(prefill), last);
  boost::sort::spreadsort::integer_sort(
      prefill.begin(), prefill.end(),
      [](const PrefillEntry& entry, unsigned bits) { return entry.first >> bits; });
  return prefill;
}

constexpr StepId kNoStep = std::numeric_limits<StepId>::max();

/// Replays a schedule as a policy. The constructor (1) sorts the prefill; (2) stores a hash of each
/// step's keys; (3) finds last uses and needed frames in a backward pass. Step verifies the hash
/// and returns the stored outcomes.
class ScheduledPolicy final : public Policy {
 public:
  ScheduledPolicy(const Trace& trace, Schedule schedule, std::optional<std::vector<CacheKey>> reads)
      : fates_(std::move(schedule.fates)),
        offsets_(trace.offsets),
        prefill_(Sorted(std::move(schedule.prefill))),
        reads_(std::move(reads)),
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
  std::optional<std::span<const CacheKey>> PrefillReads() const override {
    if (!reads_) return std::nullopt;
    return std::span(*reads_);
  }
  std::uint32_t frames_needed() const override { return needed_[step_]; }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    plan.Clear();
    if (step_ >= hashes_.size() || HashKeys(keys) != hashes_[step_]) {
      return Status::InvalidArgument(
          fmt::format("the keys differ from the keys of step {} of the {} steps of the schedule",
                      step_, hashes_.size()));
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
    if (step_ == 1) plan.done.insert(plan.done.end(), idle_.begin(), idle_.end());
    return Status::Ok();
  }

 private:
  /// Backward pass over the schedule. For each access it finds whether the content of its frame is
  /// used after the step, and for each step how many frames hold content that is used later.
  void FindLastUses() {
    const FrameId bound = FrameBound();
    std::vector<bool> awaited(bound);
    std::vector<StepId> filled(bound, kNoStep);  // by frame: the step that fills it
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
    for (const auto& [key, frame] : prefill_)
      if (frame >= bound || (!awaited[frame] && filled[frame] != 0)) idle_.push_back(frame);
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
  const std::optional<std::vector<CacheKey>> reads_;
  // by access: no later step requests the content of its frame
  std::vector<bool> last_use_;
  std::vector<std::uint32_t> needed_;  // by step: frames_needed() before it

  // Prefilled frames that no step hits and that the first step does not overwrite: with a prior,
  // keys left by the previous schedule. They are reported as done in the first step.
  std::vector<FrameId> idle_;
  std::size_t step_ = 0;
};

}  // namespace

std::vector<CacheKey> ReadsOf(const Schedule& schedule, const FrameKeys& frames) {
  FrameKeys there(frames);
  std::sort(there.begin(), there.end());
  std::vector<CacheKey> reads;
  for (const auto& [key, frame] : schedule.prefill)
    if (!std::binary_search(there.begin(), there.end(), key)) reads.push_back(key);
  std::sort(reads.begin(), reads.end());
  return reads;
}

void LeaveIn(const Trace& trace, const Schedule& schedule, FrameKeys& frames) {
  std::fill(frames.begin(), frames.end(), kNoRow);
  for (const auto& [key, frame] : schedule.prefill) frames[frame] = key;
  for (std::size_t a = 0; a < schedule.fates.size(); ++a)
    if (IsInsert(schedule.fates[a])) frames[FrameOf(schedule.fates[a])] = trace.keys[a];
}

std::unique_ptr<Policy> MakeScheduledPolicy(const Trace& trace, Schedule schedule,
                                            std::optional<std::vector<CacheKey>> reads) {
  return std::make_unique<ScheduledPolicy>(trace, std::move(schedule), std::move(reads));
}

}  // namespace internal
}  // namespace rhizome
