#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/offline_schedule.h"

namespace rhizome::inline internal {

/// Tells the schedule of a superbatch of those before it: how often each key was asked for, and
/// which keys the pool holds when the superbatch begins. Schedules that are made with it
/// (PolicyOptions::history) are used in the order in which they are made, in one pool, and nothing
/// else changes that pool between them.
///
/// Memory: 4 bytes a key, and 8 or 9 for each key that the pool holds.
/// Threads: one at a time.
class ScheduleHistory {
 public:
  /// Bytes of a history for each key, and for each frame of its pool: what is held, and what is
  /// known of that while a schedule is made.
  static constexpr std::uint64_t kBytesPerKey = 4;
  static constexpr std::uint64_t kBytesPerFrame = 32;

  /// Weighs keys in [0, key_count) by their uses so far.
  explicit ScheduleHistory(std::uint64_t key_count) : weights_(key_count, 0), counts_(true) {}

  /// Weighs each key by the chance, from 0 to 1, that a step asks for it. These weights stay.
  explicit ScheduleHistory(std::span<const double> chances);

  /// Counts what a superbatch asks for. Its keys must be in range.
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

}  // namespace rhizome::inline internal
