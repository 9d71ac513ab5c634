#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {

inline constexpr FrameId kNoFrame = std::numeric_limits<FrameId>::max();
inline constexpr CacheKey kNoKey = -1;

/// Says why a step may not ask for `key` among keys in [0, key_count): it is none of them, or else
/// the step asks for it twice.
Status NotOfAStep(CacheKey key, std::uint64_t key_count);

/// Maps keys to frames and frames to keys: 4 bytes a key and 8 bytes a frame.
class FrameTable {
 public:
  FrameTable(std::uint32_t frame_count, std::uint64_t key_count)
      : frame_of_(key_count, kNoFrame), key_of_(frame_count, kNoKey) {}

  std::uint32_t frame_count() const { return static_cast<std::uint32_t>(key_of_.size()); }
  FrameId FrameOf(CacheKey key) const {
    RHIZOME_DCHECK(key >= 0 && static_cast<std::uint64_t>(key) < frame_of_.size());
    return frame_of_[static_cast<std::size_t>(key)];
  }

  /// Puts `key` into `frame` and evicts the key that the frame held.
  void Place(CacheKey key, FrameId frame) {
    // A key that is placed twice was twice in one step, which the contract of Policy::Step forbids.
    RHIZOME_CHECK(FrameOf(key) == kNoFrame);
    Clear(frame);
    key_of_[frame] = key;
    frame_of_[static_cast<std::size_t>(key)] = frame;
  }

  void Clear(FrameId frame) {
    RHIZOME_DCHECK(frame < key_of_.size());
    const CacheKey former = key_of_[frame];
    RHIZOME_DCHECK(former == kNoKey || FrameOf(former) == frame);
    if (former != kNoKey) frame_of_[static_cast<std::size_t>(former)] = kNoFrame;
    key_of_[frame] = kNoKey;
  }

  /// Divides the keys of a step into hits and misses, both in key order. Errors: kInvalidArgument,
  /// a key out of range, or twice in the step.
  Status Judge(std::span<const CacheKey> keys, StepPlan& plan) {
    plan.Clear();
    plan.hits.reserve(keys.size());  // nothing throws while keys are marked
    plan.misses.reserve(keys.size());
    std::uint32_t judged = 0;
    while (judged < keys.size() && JudgeOne(keys[judged], judged, plan)) ++judged;
    for (const StepPlan::Place& hit : plan.hits) FrameAt(keys[hit.request]) = hit.frame;
    for (const std::uint32_t miss : plan.misses) FrameAt(keys[miss]) = kNoFrame;
    return judged == keys.size() ? Status::Ok() : NotOfAStep(keys[judged], frame_of_.size());
  }

 private:
  /// Stands for the frame of a key that the step has named already, while it is judged.
  static constexpr FrameId kNamed = kNoFrame - 1;

  FrameId& FrameAt(CacheKey key) { return frame_of_[static_cast<std::size_t>(key)]; }

  /// False: the key is out of range, or was named before.
  bool JudgeOne(CacheKey key, std::uint32_t request, StepPlan& plan) {
    if (static_cast<std::uint64_t>(key) >= frame_of_.size()) return false;
    const FrameId frame = FrameAt(key);
    if (frame == kNamed) return false;
    if (frame == kNoFrame) {
      plan.misses.push_back(request);
    } else {
      RHIZOME_DCHECK(key_of_[frame] == key);
      plan.hits.push_back({request, frame});
    }
    FrameAt(key) = kNamed;
    return true;
  }

  std::vector<FrameId> frame_of_;  // by key
  std::vector<CacheKey> key_of_;   // by frame
};

}  // namespace rhizome::inline internal
