#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/check.h"

namespace rhizome {

inline constexpr FrameId kNoFrame = std::numeric_limits<FrameId>::max();
inline constexpr CacheKey kNoKey = -1;

/// Maps keys to frames and frames to keys: 4 bytes a key and 8 bytes a frame.
class FrameTable {
 public:
  FrameTable(std::uint32_t frame_count, std::uint64_t key_count)
      : frame_of_(key_count, kNoFrame), key_of_(frame_count, kNoKey) {}

  std::uint32_t frame_count() const { return static_cast<std::uint32_t>(key_of_.size()); }
  FrameId FrameOf(CacheKey key) const { return frame_of_[static_cast<std::size_t>(key)]; }

  /// Puts `key` into `frame` and evicts the key that the frame held.
  void Place(CacheKey key, FrameId frame) {
    // A key that is placed twice was twice in one step, which the contract of Policy::Step forbids.
    RHIZOME_CHECK(FrameOf(key) == kNoFrame);
    Clear(frame);
    key_of_[frame] = key;
    frame_of_[static_cast<std::size_t>(key)] = frame;
  }

  void Clear(FrameId frame) {
    const CacheKey former = key_of_[frame];
    if (former != kNoKey) frame_of_[static_cast<std::size_t>(former)] = kNoFrame;
    key_of_[frame] = kNoKey;
  }

  /// Divides the keys of a step into hits and misses, both in key order.
  void Judge(std::span<const CacheKey> keys, StepPlan& plan) const {
    plan.Clear();
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      const FrameId frame = FrameOf(keys[i]);
      if (frame == kNoFrame) {
        plan.misses.push_back(i);
      } else {
        plan.hits.push_back({i, frame});
      }
    }
  }

 private:
  std::vector<FrameId> frame_of_;  // by key
  std::vector<CacheKey> key_of_;   // by frame
};

}  // namespace rhizome
