#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/policy/schedule_history.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Plans the frames of a device over superbatches. Each superbatch has its own policy, as in
/// FeatureCache on the host. Rows in the frames at the end of a superbatch remain for the next one,
/// whose schedule starts with them. Among the rows that a superbatch does not request again, those
/// used most are kept (ScheduleHistory).
///
/// Other rows of a prefill are uploaded when they are first requested, because the host holds them
/// at that time. A schedule prefills only rows that are requested before their frame is reused, so
/// this uploads no more rows than an immediate prefill.
/// Threads: Announce and Step may run concurrently.
class DeviceFrames {
 public:
  /// Bytes of schedules per key of a superbatch's steps, for the schedule in use and the next one.
  /// Building a schedule temporarily needs more, but not more than the host cache's schedule, which
  /// the same thread builds.
  static constexpr std::uint64_t kScheduleBytesPerAccess = 8;

  /// Returns the host memory for the bookkeeping of frames and keys, without schedules.
  static std::uint64_t HostBytes(PolicyKind kind, std::uint32_t frame_count,
                                 std::uint64_t key_count);

  /// Manages frames [0, frame_count) for keys in [0, key_count).
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

  /// Announces the steps of the next superbatch. Errors: as MakePolicy.
  Status Announce(const Trace& trace);

  /// Plans the next announced step, for DevicePool. Errors: as Policy::Step;
  /// kInvalidArgument, the step was not announced.
  Status Step(std::span<const CacheKey> keys, StepPlan& plan);

 private:
  static constexpr CacheKey kNothing = -1;
  struct Superbatch {
    std::unique_ptr<Policy> policy;  // null: the previous superbatch's policy continues
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
  std::optional<ScheduleHistory> history_;  // used by Announce only

  // Used by Step only.
  std::unique_ptr<Policy> policy_;
  std::size_t steps_left_ = 0;
  std::uint64_t step_ = 0;
  StepPlan planned_;
  std::vector<FrameId> place_;           // place on the device, by frame of the policy
  std::vector<bool> absent_;             // by frame: prefilled, but not uploaded yet
  std::vector<std::uint64_t> inserted_;  // by frame: the last step that inserted into it
  std::vector<CacheKey> held_;           // by place: its key
};

}  // namespace internal
}  // namespace rhizome
