#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/policy.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

inline constexpr FrameId kNoFrame = std::numeric_limits<FrameId>::max();
inline constexpr CacheKey kNoKey = -1;

/// Returns the error for a step that requests an invalid key: `key` is not in [0, key_count), or
/// else the step requests it twice.
Status NotOfAStep(CacheKey key, std::uint64_t key_count);

/// Maps keys to frames and frames to keys: 4 bytes per key and 8 bytes per frame.
class FrameTable {
 public:
  FrameTable(std::uint32_t frame_count, std::uint64_t key_count)
      : frame_of_(key_count, kNoFrame), key_of_(frame_count, kNoKey) {}

  std::uint32_t frame_count() const { return static_cast<std::uint32_t>(key_of_.size()); }
  FrameId FrameOf(CacheKey key) const {
    RHIZOME_DCHECK(key >= 0 && static_cast<std::uint64_t>(key) < frame_of_.size());
    return frame_of_[static_cast<std::size_t>(key)];
  }

  /// Stores `key` in `frame` and evicts the frame's previous key.
  void Place(CacheKey key, FrameId frame) {
    // A key that is placed twice occurred twice in one step, which violates the contract of
    // Policy::Step.
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

  /// Divides the keys of a step into hits and misses, both in the order of the step. Errors:
  /// kInvalidArgument, a key is out of range or occurs twice in the step.
  Status Judge(std::span<const CacheKey> keys, StepPlan& plan) {
    plan.Clear();
    plan.hits.reserve(keys.size());  // so that nothing throws while keys are marked
    plan.misses.reserve(keys.size());
    std::uint32_t judged = 0;
    while (judged < keys.size() && JudgeOne(keys[judged], judged, plan)) ++judged;
    for (const StepPlan::Place& hit : plan.hits) FrameAt(keys[hit.request]) = hit.frame;
    for (const std::uint32_t miss : plan.misses) FrameAt(keys[miss]) = kNoFrame;
    return judged == keys.size() ? Status::Ok() : NotOfAStep(keys[judged], frame_of_.size());
  }

 private:
  /// Marks a key that the step has already named, in place of its frame, during Judge.
  static constexpr FrameId kNamed = kNoFrame - 1;

  FrameId& FrameAt(CacheKey key) { return frame_of_[static_cast<std::size_t>(key)]; }

  /// Returns false if the key is out of range or was named before.
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

}  // namespace internal
}  // namespace rhizome
