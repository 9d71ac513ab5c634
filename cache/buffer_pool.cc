#include "rhizome/cache/buffer_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

constexpr CacheKey kNothing = -1;

}  // namespace

Result<BufferPool> BufferPool::Create(std::size_t frame_bytes, std::uint32_t frame_count,
                                      HoldRoom room) {
  BufferPool pool;
  std::size_t pool_bytes = 0;
  pool.slot_count_ = frame_count + std::max(room.most, room.slots);
  if (pool.slot_count_ >= kNowhere ||
      __builtin_mul_overflow(frame_bytes, std::size_t{pool.slot_count_}, &pool_bytes)) {
    return Fail(Status::OutOfMemory(
        fmt::format("a pool of {} frames of {} bytes is larger than any memory; lower the cache's "
                    "capacity",
                    pool.slot_count_, frame_bytes)));
  }
  pool.frame_bytes_ = frame_bytes;
  if (pool_bytes > 0) {
    RHIZOME_ASSIGN_OR_RETURN(pool.memory_,
                             AlignedBuffer::Reserve(pool_bytes, frame_count * frame_bytes));
  }
  pool.table_ = std::make_unique<SlotTable>(frame_count + room.slots, pool.slot_count_);
  pool.place_.assign(frame_count, kNowhere);
  pool.policy_ = MakeNonePolicy();
  return pool;
}

void BufferPool::SetPolicy(std::unique_ptr<Policy> policy) {
  policy_ = policy != nullptr ? std::move(policy) : MakeNonePolicy();
}

std::vector<std::pair<CacheKey, SlotId>> BufferPool::SlotsByKey() const {
  std::vector<std::pair<CacheKey, SlotId>> held;
  for (SlotId slot = 0; slot < holds_.size(); ++slot) {
    if (holds_[slot] != kNothing) held.emplace_back(holds_[slot], slot);
  }
  std::sort(held.begin(), held.end());
  return held;
}

std::vector<std::pair<CacheKey, FrameId>> BufferPool::Prefill() {
  std::vector<std::pair<CacheKey, FrameId>> prefill = policy_->Prefill();
  counters_.prefill += prefill.size();
  std::sort(prefill.begin(), prefill.end());
  const std::vector<std::pair<CacheKey, SlotId>> held = SlotsByKey();

  std::vector<SlotId> places(place_.size(), kNowhere);
  std::vector<SlotId> kept;
  auto there = held.begin();
  std::size_t missing = 0;
  for (const auto& [key, frame] : prefill) {
    while (there != held.end() && there->first < key) ++there;
    if (there == held.end() || there->first != key) {
      prefill[missing++] = {key, frame};
      continue;
    }
    places[frame] = there->second;
    kept.push_back(there->second);
  }
  counters_.kept += prefill.size() - missing;
  prefill.resize(missing);
  std::vector<SlotId> former = std::exchange(place_, std::move(places));
  std::erase(former, kNowhere);
  table_->Rename(kept, former);
  return prefill;
}

Result<std::size_t> BufferPool::WaitForRoom(std::size_t wanted) {
  return table_->WaitForRoom(1, wanted);
}

void BufferPool::Plan(std::span<const CacheKey> keys, StepPlan& plan) {
  policy_->Step(keys, plan);
  RHIZOME_CHECK(plan.hits.size() + plan.misses.size() == keys.size());
  counters_.requests += keys.size();
  counters_.hits += plan.hits.size();
  counters_.misses += plan.misses.size();
}

std::span<std::byte> BufferPool::frame(FrameId frame) const {
  RHIZOME_CHECK(frame < place_.size() && place_[frame] != kNowhere);
  return slot(place_[frame]);
}

std::span<std::byte> BufferPool::Fill(CacheKey key, FrameId frame) {
  RHIZOME_CHECK(frame < place_.size());
  place_[frame] = table_->Own(place_[frame]);
  SetHolds(place_[frame], key);
  return slot(place_[frame]);
}

Status BufferPool::Hold(std::span<const CacheKey> keys, const StepPlan& plan,
                        std::vector<SlotId>& slots) {
  if (!plan.misses.empty()) {
    const std::size_t misses = plan.misses.size();
    const Result<std::size_t> room = table_->WaitForRoom(misses, misses);
    if (!room) return room.error();
  }
  slots.resize(keys.size());
  std::vector<SlotId> named;
  named.reserve(keys.size());
  for (const StepPlan::Place& hit : plan.hits) {
    slots[hit.request] = place_[hit.frame];
    named.push_back(place_[hit.frame]);
  }
  std::vector<SlotId> taken(plan.misses.size());
  table_->Take(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    slots[plan.misses[i]] = taken[i];
    SetHolds(taken[i], keys[plan.misses[i]]);
  }
  std::vector<SlotId> dropped;
  dropped.reserve(plan.inserts.size());
  for (const StepPlan::Place& insert : plan.inserts) {
    named.push_back(slots[insert.request]);
    const SlotId former = std::exchange(place_[insert.frame], slots[insert.request]);
    if (former != kNowhere) dropped.push_back(former);
  }
  table_->Rename(named, dropped);
  table_->Hold();
  return Status::Ok();
}

void BufferPool::SetHolds(SlotId slot, CacheKey key) {
  if (slot >= holds_.size()) holds_.resize(slot + 1, kNothing);
  holds_[slot] = key;
}

void BufferPool::Discard() {
  if (!table_->WaitUntilReleased()) return;
  memory_.GiveBack();
  Forget();
}

void BufferPool::Forget() { std::fill(holds_.begin(), holds_.end(), kNothing); }

}  // namespace rhizome
