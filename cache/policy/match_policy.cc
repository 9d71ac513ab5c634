#include <algorithm>

#include "cache/policy/basic_policies.h"
#include "cache/policy/frame_table.h"
#include "rhizome/policy.h"
#include "storage/base/check.h"

namespace rhizome {
namespace {

/// Keeps the keys of the last step. Invariant between steps: `held_` lists the frames of the last
/// step's keys, or of its first frame_count keys if it had more. All other frames are in `free_`
/// and hold no key.
class MatchPolicy final : public Policy {
 public:
  MatchPolicy(std::uint32_t frame_count, std::uint64_t key_count)
      : table_(frame_count, key_count), stays_(frame_count, false) {
    held_.reserve(frame_count);
    free_.reserve(frame_count);
    for (FrameId frame = frame_count; frame > 0; --frame) free_.push_back(frame - 1);
  }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    RHIZOME_RETURN_IF_ERROR(table_.Judge(keys, plan));
    const std::size_t kept = std::min<std::size_t>(keys.size(), table_.frame_count());
    KeepHits(plan, kept);
    for (const std::uint32_t miss : plan.misses) {
      if (miss >= kept) break;
      RHIZOME_DCHECK(!free_.empty());
      const FrameId frame = free_.back();
      free_.pop_back();
      table_.Place(keys[miss], frame);
      plan.inserts.push_back({miss, frame});
      held_.push_back(frame);
    }
    RHIZOME_DCHECK(held_.size() == kept && held_.size() + free_.size() == table_.frame_count());
    return Status::Ok();
  }

 private:
  /// Frees every held frame except those hit by the step's first `kept` keys.
  void KeepHits(const StepPlan& plan, std::size_t kept) {
    for (const StepPlan::Place& hit : plan.hits) {
      RHIZOME_DCHECK(!stays_[hit.frame]);
      stays_[hit.frame] = hit.request < kept;
    }
    std::size_t staying = 0;
    for (const FrameId frame : held_) {
      if (stays_[frame]) {
        held_[staying++] = frame;
      } else {
        table_.Clear(frame);
        free_.push_back(frame);
      }
      stays_[frame] = false;
    }
    held_.resize(staying);
  }

  FrameTable table_;
  std::vector<FrameId> held_;
  std::vector<FrameId> free_;
  std::vector<bool> stays_;  // by frame; all false between steps
};

}  // namespace

std::unique_ptr<Policy> MakeMatchPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<MatchPolicy>(frame_count, key_count);
}

}  // namespace rhizome
