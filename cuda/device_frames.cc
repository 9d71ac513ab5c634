#include "cuda/device_frames.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace rhizome {
inline namespace internal {

std::uint64_t DeviceFrames::HostBytes(PolicyKind kind, std::uint32_t frame_count,
                                      std::uint64_t key_count) {
  if (frame_count == 0) return 0;
  // Arrays indexed by frame, and one map node per held row while a superbatch starts.
  constexpr std::uint64_t kNode = 48;
  std::uint64_t of_frame = sizeof(FrameId) + sizeof(std::uint64_t) + sizeof(CacheKey) + 1 + kNode;
  std::uint64_t of_key = PolicyBytesPerKey(kind);
  if (TakesPrior(kind)) {
    of_frame += ScheduleHistory::kBytesPerFrame;
    of_key += ScheduleHistory::kBytesPerKey;
  }
  return frame_count * of_frame + key_count * of_key;
}

Status DeviceFrames::Announce(const Trace& trace) {
  bool continues = false;
  {
    const MutexLock lock(mutex_);
    // An online policy keeps its state from one superbatch to the next.
    continues = std::exchange(any_, true) && !KnowsTheFuture(kind_);
  }
  Superbatch superbatch{.policy = nullptr, .steps = trace.steps()};
  if (!continues) {
    RHIZOME_ASSIGN_OR_RETURN(superbatch.policy,
                             MakePolicy({.kind = kind_,
                                         .frame_count = static_cast<std::uint32_t>(place_.size()),
                                         .key_count = key_count_,
                                         .history = history_ ? &*history_ : nullptr},
                                        trace));
  }
  const MutexLock lock(mutex_);
  announced_.push_back(std::move(superbatch));
  return Status::Ok();
}

Status DeviceFrames::StartNext() {
  Superbatch next;
  {
    const MutexLock lock(mutex_);
    if (announced_.empty())
      return Status::InvalidArgument("device frames: a step that was not announced");
    next = std::move(announced_.front());
    announced_.pop_front();
  }
  steps_left_ = next.steps;
  if (next.policy == nullptr) return Status::Ok();
  Start(*next.policy);
  policy_ = std::move(next.policy);
  return Status::Ok();
}

/// Assigns a place on the device to each frame of a new policy. Prefilled rows that the device
/// holds keep their place; the other frames get the remaining places.
void DeviceFrames::Start(const Policy& policy) {
  constexpr FrameId kNoPlace = ~FrameId{0};
  std::unordered_map<CacheKey, FrameId> place_of;
  for (FrameId place = 0; place < held_.size(); ++place)
    if (held_[place] != kNothing) place_of.emplace(held_[place], place);
  std::fill(place_.begin(), place_.end(), kNoPlace);
  std::fill(absent_.begin(), absent_.end(), false);
  std::vector<bool> used(held_.size());
  for (const auto& [key, frame] : policy.Prefill()) {
    const auto found = place_of.find(key);
    absent_[frame] = found == place_of.end();
    if (absent_[frame]) continue;
    place_[frame] = found->second;
    used[found->second] = true;
  }
  FrameId next = 0;
  for (FrameId& place : place_) {
    if (place != kNoPlace) continue;
    while (used[next]) ++next;
    place = next++;
  }
}

void DeviceFrames::Insert(const StepPlan::Place& insert, std::span<const CacheKey> keys,
                          StepPlan& plan) {
  absent_[insert.frame] = false;
  held_[place_[insert.frame]] = keys[insert.request];
  plan.inserts.push_back({insert.request, place_[insert.frame]});
}

Status DeviceFrames::Step(std::span<const CacheKey> keys, StepPlan& plan) {
  while (steps_left_ == 0) RHIZOME_RETURN_IF_ERROR(StartNext());
  RHIZOME_RETURN_IF_ERROR(policy_->Step(keys, planned_));
  --steps_left_;
  ++step_;
  plan.Clear();
  plan.misses = planned_.misses;
  for (const StepPlan::Place& insert : planned_.inserts) inserted_[insert.frame] = step_;
  for (const StepPlan::Place& hit : planned_.hits) {
    if (!absent_[hit.frame]) {
      plan.hits.push_back({hit.request, place_[hit.frame]});
      continue;
    }
    plan.misses.push_back(hit.request);
    // If this step inserts another key into the frame, this key is not inserted.
    if (inserted_[hit.frame] != step_) Insert(hit, keys, plan);
  }
  for (const StepPlan::Place& insert : planned_.inserts) Insert(insert, keys, plan);
  std::sort(plan.misses.begin(), plan.misses.end());
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
