#include <fmt/format.h>

#include <algorithm>

#include "cache/policy/basic_policies.h"
#include "cache/policy/frame_table.h"
#include "rhizome/policy.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {

Status internal::NotOfAStep(CacheKey key, std::uint64_t key_count) {
  const bool is_key = key >= 0 && static_cast<std::uint64_t>(key) < key_count;
  return Status::InvalidArgument(
      is_key ? fmt::format("a step requests key {} twice", key)
             : fmt::format("a step requests key {}, which is not in [0, {})", key, key_count));
}

namespace {

/// Caches nothing: every key is a miss.
class NonePolicy final : public Policy {
 public:
  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    plan.Clear();
    for (std::uint32_t i = 0; i < keys.size(); ++i) plan.misses.push_back(i);
    return Status::Ok();
  }
};

/// Keeps the first frame_count keys of a ranking for the whole trace.
class StaticPolicy final : public Policy {
 public:
  StaticPolicy(std::uint32_t frame_count, std::uint64_t key_count,
               std::span<const CacheKey> ranking)
      : table_(frame_count, key_count) {
    for (const CacheKey key : ranking) {
      if (prefill_.size() == frame_count) break;
      if (table_.FrameOf(key) != kNoFrame) continue;
      const FrameId frame = static_cast<FrameId>(prefill_.size());
      table_.Place(key, frame);
      prefill_.emplace_back(key, frame);
    }
    std::sort(prefill_.begin(), prefill_.end());
  }

  std::span<const PrefillEntry> Prefill() const override { return prefill_; }
  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    return table_.Judge(keys, plan);
  }

 private:
  FrameTable table_;
  std::vector<PrefillEntry> prefill_;
};

/// Evicts in insertion order. The frames form a ring whose oldest key is evicted next; a hit
/// changes nothing.
class FifoPolicy final : public Policy {
 public:
  FifoPolicy(std::uint32_t frame_count, std::uint64_t key_count) : table_(frame_count, key_count) {}

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    RHIZOME_RETURN_IF_ERROR(table_.Judge(keys, plan));
    const std::size_t kept = std::min<std::size_t>(plan.misses.size(), table_.frame_count());
    for (std::size_t m = plan.misses.size() - kept; m < plan.misses.size(); ++m) {
      table_.Place(keys[plan.misses[m]], oldest_);
      plan.inserts.push_back({plan.misses[m], oldest_});
      oldest_ = oldest_ + 1 == table_.frame_count() ? 0 : oldest_ + 1;
    }
    return Status::Ok();
  }

 private:
  FrameTable table_;
  FrameId oldest_ = 0;
};

/// Evicts the least recently used key. The frames that hold keys form a circular list with a
/// sentinel, most recently used first. A step (1) judges its keys; (2) unlinks the hits; (3) links
/// the last frame_count keys in step order, taking frames from `free_` or evicting the oldest.
///
/// Invariant between steps: every frame is either linked (and holds a key) or in `free_`.
class LruPolicy final : public Policy {
 public:
  LruPolicy(std::uint32_t frame_count, std::uint64_t key_count)
      : table_(frame_count, key_count),
        sentinel_(frame_count),
        newer_(std::size_t{frame_count} + 1, sentinel_),
        older_(std::size_t{frame_count} + 1, sentinel_) {
    free_.reserve(frame_count);
    for (FrameId frame = frame_count; frame > 0; --frame) free_.push_back(frame - 1);
  }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) override {
    RHIZOME_RETURN_IF_ERROR(table_.Judge(keys, plan));
    const std::size_t first_kept = keys.size() - std::min<std::size_t>(keys.size(), sentinel_);
    // Hits are unlinked first, so that no insert of this step uses the frame of a key that the same
    // step uses later. Every frame that is still linked is older than the whole step.
    for (const StepPlan::Place& hit : plan.hits) Unlink(hit.frame);
    std::size_t hits = 0;
    for (; hits < plan.hits.size() && plan.hits[hits].request < first_kept; ++hits) {
      table_.Clear(plan.hits[hits].frame);
      free_.push_back(plan.hits[hits].frame);
    }
    for (std::size_t i = first_kept; i < keys.size(); ++i) {
      if (hits < plan.hits.size() && plan.hits[hits].request == i) {
        LinkNewest(plan.hits[hits++].frame);
        continue;
      }
      const FrameId frame = TakeFrame();
      table_.Place(keys[i], frame);
      plan.inserts.push_back({static_cast<std::uint32_t>(i), frame});
      LinkNewest(frame);
    }
    RHIZOME_DCHECK(hits == plan.hits.size());
    return Status::Ok();
  }

 private:
  FrameId TakeFrame() {
    if (!free_.empty()) {
      const FrameId frame = free_.back();
      free_.pop_back();
      return frame;
    }
    const FrameId oldest = newer_[sentinel_];
    RHIZOME_DCHECK(oldest != sentinel_);  // every frame is linked or free
    Unlink(oldest);
    return oldest;
  }

  void Unlink(FrameId frame) {
    RHIZOME_CHECK(newer_[frame] != frame);  // already unlinked
    older_[newer_[frame]] = older_[frame];
    newer_[older_[frame]] = newer_[frame];
    newer_[frame] = frame;
  }

  void LinkNewest(FrameId frame) {
    const FrameId second = older_[sentinel_];
    older_[sentinel_] = frame;
    newer_[frame] = sentinel_;
    older_[frame] = second;
    newer_[second] = frame;
  }

  FrameTable table_;
  const FrameId sentinel_;  // its `older_` is the newest frame, its `newer_` the oldest
  std::vector<FrameId> newer_;
  std::vector<FrameId> older_;
  std::vector<FrameId> free_;
};

}  // namespace

std::unique_ptr<Policy> MakeNonePolicy() { return std::make_unique<NonePolicy>(); }

std::unique_ptr<Policy> MakeLruPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<LruPolicy>(frame_count, key_count);
}

std::unique_ptr<Policy> MakeFifoPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<FifoPolicy>(frame_count, key_count);
}

Result<std::unique_ptr<Policy>> MakeStaticPolicy(std::uint32_t frame_count, std::uint64_t key_count,
                                                 std::span<const CacheKey> ranking) try {
  for (const CacheKey key : ranking) {
    if (key < 0 || static_cast<std::uint64_t>(key) >= key_count) {
      return Fail(Status::InvalidArgument(
          fmt::format("key {} of a ranking is not in [0, {})", key, key_count)));
    }
  }
  return std::make_unique<StaticPolicy>(frame_count, key_count, ranking);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
