#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/policies.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/schedule_history.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The plans of a device's frames over superbatches, each with a policy of its own, as
/// FeatureCache's on the host. What frames hold at the end of a superbatch stays for the next,
/// whose schedule begins with it, and of rows that a superbatch does not ask for again those stay
/// that were used most (ScheduleHistory). Other rows of a prefill go up when they are first asked
/// for, not before: the host holds them then, and a schedule prefills only what is asked for before
/// its frame is given to another key, so that this costs no more.
/// Threads: Announce and Step may overlap.
class DeviceFrames {
 public:
  /// Bytes of schedules for each key of a superbatch's steps: that of the superbatch in use and of
  /// the next one. (While one is made it takes more, but not more than that of the host's cache,
  /// which is made by the same thread.)
  static constexpr std::uint64_t kScheduleBytesPerAccess = 8;

  /// Returns the memory of the host that is known of frames and keys, beside schedules.
  static std::uint64_t HostBytes(PolicyKind kind, std::uint32_t frame_count,
                                 std::uint64_t key_count);

  /// Frames [0, frame_count) for keys in [0, key_count).
  DeviceFrames(PolicyKind kind, std::uint32_t frame_count, std::uint64_t key_count)
      : kind_(kind),
        key_count_(key_count),
        place_(frame_count),
        absent_(frame_count),
        inserted_(frame_count),
        held_(frame_count, kNothing) {
    if (TakesPrior(kind) && frame_count > 0) history_.emplace(key_count);
    for (std::uint32_t f = 0; f < frame_count; ++f) place_[f] = f;
  }

  /// Announces the steps of the next superbatch. Errors: those of MakePolicy.
  Status Announce(const Trace& trace);

  /// Plans the next step, for DevicePool, of those that were announced. Errors: those of
  /// Policy::Step; kInvalidArgument, no such step was announced.
  Status Step(std::span<const CacheKey> keys, StepPlan& plan);

 private:
  static constexpr CacheKey kNothing = -1;
  struct Superbatch {
    std::unique_ptr<Policy> policy;  // null: the policy of the one before continues
    std::size_t steps = 0;
  };
  Status StartNext();
  void Start(const Policy& policy);
  void Insert(const StepPlan::Place& insert, std::span<const CacheKey> keys, StepPlan& plan);

  const PolicyKind kind_;
  const std::uint64_t key_count_;

  Mutex mutex_;
  std::deque<Superbatch> announced_ RHIZOME_GUARDED_BY(mutex_);
  bool any_ RHIZOME_GUARDED_BY(mutex_) = false;
  std::optional<ScheduleHistory> history_;  // of Announce alone

  // Members of Step alone.
  std::unique_ptr<Policy> policy_;
  std::size_t steps_left_ = 0;
  std::uint64_t step_ = 0;
  StepPlan planned_;
  std::vector<FrameId> place_;           // on the device, by the policy's frame
  std::vector<bool> absent_;             // by frame: prefilled, but not there yet
  std::vector<std::uint64_t> inserted_;  // by frame: the step that last put something into it
  std::vector<CacheKey> held_;           // by place
};

}  // namespace rhizome::inline internal
