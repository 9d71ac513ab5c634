#include <algorithm>
#include <deque>

#include "cache/policy/basic_policies.h"
#include "cache/policy/frame_table.h"
#include "rhizome/policy.h"
#include "storage/base/check.h"

namespace rhizome {
namespace {

/// Base class of policies that decide by keys alone; a subclass decides what happens to a requested
/// key. A step (1) judges its keys; (2) passes them one by one to Touch or Insert, after MakeRoom
/// if the pool is full; (3) assigns frames to the keys that are still resident. Frames are assigned
/// at the end because a step may be larger than the pool.
class QueuePolicy : public Policy {
 public:
  QueuePolicy(std::uint32_t frame_count, std::uint64_t key_count)
      : table_(frame_count, key_count), resident_(key_count, false) {
    free_.reserve(frame_count);
    for (FrameId frame = frame_count; frame > 0; --frame) free_.push_back(frame - 1);
  }

  Status Step(std::span<const CacheKey> keys, StepPlan& plan) final {
    RHIZOME_RETURN_IF_ERROR(table_.Judge(keys, plan));
    if (table_.frame_count() == 0) return Status::Ok();
    for (const CacheKey key : keys) {
      if (resident(key)) {
        Touch(key);
        continue;
      }
      if (size_ == table_.frame_count()) MakeRoom();
      RHIZOME_DCHECK(size_ < table_.frame_count());
      resident_[static_cast<std::size_t>(key)] = true;
      ++size_;
      Insert(key);
    }
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if (!resident(keys[i]) || table_.FrameOf(keys[i]) != kNoFrame) continue;
      RHIZOME_DCHECK(!free_.empty());
      table_.Place(keys[i], free_.back());
      plan.inserts.push_back({i, free_.back()});
      free_.pop_back();
    }
    RHIZOME_DCHECK(size_ + free_.size() == table_.frame_count());
    return Status::Ok();
  }

 protected:
  /// Called when a resident `key` is requested.
  virtual void Touch(CacheKey key) = 0;
  /// Called when a `key` is requested that is not resident. The pool has space for it.
  virtual void Insert(CacheKey key) = 0;
  /// Must call Evict for exactly one key.
  virtual void MakeRoom() = 0;

  void Evict(CacheKey key) {
    RHIZOME_DCHECK(resident(key) && size_ != 0);
    resident_[static_cast<std::size_t>(key)] = false;
    --size_;
    const FrameId frame = table_.FrameOf(key);
    if (frame == kNoFrame) return;  // inserted in this step, so it has no frame yet
    table_.Clear(frame);
    free_.push_back(frame);
  }

 private:
  bool resident(CacheKey key) const { return resident_[static_cast<std::size_t>(key)]; }

  FrameTable table_;
  std::vector<bool> resident_;  // by key
  std::uint32_t size_ = 0;
  std::vector<FrameId> free_;
};

/// CLOCK: a queue, oldest first. A key at its head gets a second chance if it was used since it was
/// last there.
class ClockPolicy final : public QueuePolicy {
 public:
  ClockPolicy(std::uint32_t frame_count, std::uint64_t key_count)
      : QueuePolicy(frame_count, key_count), used_(key_count, false) {}

 private:
  void Touch(CacheKey key) override { used_[static_cast<std::size_t>(key)] = true; }
  void Insert(CacheKey key) override { queue_.push_back(key); }

  void MakeRoom() override {
    while (true) {
      RHIZOME_DCHECK(!queue_.empty());
      const CacheKey oldest = queue_.front();
      queue_.pop_front();
      if (!used_[static_cast<std::size_t>(oldest)]) return Evict(oldest);
      used_[static_cast<std::size_t>(oldest)] = false;
      queue_.push_back(oldest);
    }
  }

  std::vector<bool> used_;  // by key
  std::deque<CacheKey> queue_;
};

/// S3-FIFO (Yang et al., SOSP 2023, algorithm 1): new keys pass through a small queue. Keys that
/// were hit at least twice in it, or that return while they are in the ghost queue, enter the main
/// queue.
class S3FifoPolicy final : public QueuePolicy {
 public:
  S3FifoPolicy(std::uint32_t frame_count, std::uint64_t key_count)
      : QueuePolicy(frame_count, key_count),
        small_target_(std::max(frame_count / 10, 1U)),
        main_target_(frame_count - std::min(frame_count, small_target_)),
        uses_(key_count, 0),
        ghost_(key_count, 0) {}

 private:
  static constexpr std::uint8_t kMaxUses = 3;

  std::uint8_t& UsesOf(CacheKey key) { return uses_[static_cast<std::size_t>(key)]; }

  void Touch(CacheKey key) override {
    std::uint8_t& uses = UsesOf(key);
    uses = std::min<std::uint8_t>(static_cast<std::uint8_t>(uses + 1), kMaxUses);
  }

  void Insert(CacheKey key) override {
    UsesOf(key) = 0;
    // The key is still in the ghost queue if fewer than main_target_ keys have left the small queue
    // after it. Its ghost entry is left to expire.
    std::uint64_t& ghost = ghost_[static_cast<std::size_t>(key)];
    if (ghost != 0 && ghosts_ - ghost < main_target_) {
      main_.push_back(key);
    } else {
      small_.push_back(key);
    }
    ghost = 0;
  }

  void MakeRoom() override {
    bool evicted = false;
    while (!evicted)
      evicted = small_.size() >= small_target_ || main_.empty() ? ShrinkSmall() : ShrinkMain();
  }

  bool ShrinkSmall() {
    RHIZOME_DCHECK(!small_.empty());
    const CacheKey oldest = small_.front();
    small_.pop_front();
    if (UsesOf(oldest) > 1 && main_target_ > 0) {
      UsesOf(oldest) = 0;
      main_.push_back(oldest);
      return main_.size() > main_target_ && ShrinkMain();
    }
    ghost_[static_cast<std::size_t>(oldest)] = ++ghosts_;
    Evict(oldest);
    return true;
  }

  bool ShrinkMain() {
    while (true) {
      RHIZOME_DCHECK(!main_.empty());
      const CacheKey oldest = main_.front();
      main_.pop_front();
      if (UsesOf(oldest) == 0) {
        Evict(oldest);
        return true;
      }
      --UsesOf(oldest);
      main_.push_back(oldest);
    }
  }

  const std::uint32_t small_target_;
  const std::uint32_t main_target_;
  std::deque<CacheKey> small_;  // oldest first
  std::deque<CacheKey> main_;
  std::vector<std::uint8_t> uses_;    // by key: uses since it entered its queue
  std::vector<std::uint64_t> ghost_;  // by key: its departure number; 0: none
  std::uint64_t ghosts_ = 0;          // departures from the small queue so far
};

}  // namespace

std::unique_ptr<Policy> MakeClockPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<ClockPolicy>(frame_count, key_count);
}

std::unique_ptr<Policy> MakeS3FifoPolicy(std::uint32_t frame_count, std::uint64_t key_count) {
  return std::make_unique<S3FifoPolicy>(frame_count, key_count);
}

}  // namespace rhizome
