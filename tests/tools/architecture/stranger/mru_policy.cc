#include "cache/policy/frame_table.h"
#include "rhizome/policy.h"

namespace rhizome {
namespace {

/// Evicts the key that was used last, which suits repeated scans. If a step does not fit, the first
/// keys of the step are kept.
class MruPolicy final : public Policy {
 public:
  MruPolicy(std::uint32_t frame_count, std::uint64_t key_count) : table_(frame_count, key_count) {}

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    RHIZOME_RETURN_IF_ERROR(table_.Judge(keys, plan));
    for (const StepPlan::Place& hit : plan.hits) last_ = hit.frame;
    for (const std::uint32_t miss : plan.misses) {
      const bool full = used_ == table_.frame_count();
      if (!full) last_ = used_++;
      table_.Place(keys[miss], last_);
      plan.inserts.push_back({miss, last_});
      if (full) break;
    }
    return Status::Ok();
  }

 private:
  FrameTable table_;
  FrameId used_ = 0;  // frames that hold a key: [0, used_)
  FrameId last_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeMruPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<MruPolicy>(frame_count, key_count);
}

}  // namespace rhizome
