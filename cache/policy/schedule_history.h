#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cache/policy/offline_schedule.h"

namespace rhizome {
inline namespace internal {

/// Information about earlier superbatches for the schedule of the next one: how often each key was
/// requested, and which keys the pool holds at its start. Schedules created with a history
/// (PolicyOptions::history) must be used in the order of their creation, in one pool, and nothing
/// else may change that pool between them.
///
/// Memory: 4 bytes per key, and 8 or 9 for each key that the pool holds.
/// Threads: not thread-safe.
class ScheduleHistory {
 public:
  /// Bytes of a history per key, and per frame of its pool: the held keys, and what is known about
  /// them while a schedule is built.
  static constexpr std::uint64_t kBytesPerKey = 4;
  static constexpr std::uint64_t kBytesPerFrame = 32;

  /// Weighs keys in [0, key_count) by their number of uses so far.
  explicit ScheduleHistory(std::uint64_t key_count) : weights_(key_count, 0), counts_(true) {}

  /// Weighs each key by the chance, in [0, 1], that a step requests it. These weights do not
  /// change.
  explicit ScheduleHistory(std::span<const double> chances);

  /// Counts the requests of a superbatch. Its keys must be in range.
  void Count(const Trace& superbatch);

  ScheduleStart start() const {
    return {.prior = {.weight = weights_, .chance_of_one = chance_of_one_}, .held = &held_};
  }
  const HeldKeys& held() const { return held_; }
  void SetHeld(HeldKeys held) { held_ = std::move(held); }

 private:
  std::vector<std::uint32_t> weights_;  // by key
  const bool counts_;
  std::uint64_t steps_ = 0;
  float chance_of_one_ = 1;
  HeldKeys held_;
};

}  // namespace internal
}  // namespace rhizome
