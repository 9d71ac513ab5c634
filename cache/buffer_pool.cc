#include "rhizome/cache/buffer_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

constexpr CacheKey kNothing = -1;
constexpr FrameId kNoPlace = std::numeric_limits<FrameId>::max();

/// Keys with their places, in order of keys.
std::vector<std::pair<CacheKey, FrameId>> HeldByKey(std::span<const CacheKey> holds) {
  std::vector<std::pair<CacheKey, FrameId>> held;
  for (FrameId place = 0; place < holds.size(); ++place) {
    if (holds[place] != kNothing) held.emplace_back(holds[place], place);
  }
  std::sort(held.begin(), held.end());
  return held;
}

}  // namespace

Result<BufferPool> BufferPool::Create(std::size_t frame_bytes, std::uint32_t frame_count) {
  std::size_t pool_bytes = 0;
  if (__builtin_mul_overflow(frame_bytes, std::size_t{frame_count}, &pool_bytes)) {
    return Fail(Status::OutOfMemory(
        fmt::format("a pool of {} frames of {} bytes is larger than any memory; lower the cache's "
                    "capacity",
                    frame_count, frame_bytes)));
  }
  BufferPool pool;
  pool.frame_bytes_ = frame_bytes;
  pool.frame_count_ = frame_count;
  if (pool_bytes > 0) {
    RHIZOME_ASSIGN_OR_RETURN(pool.memory_, AlignedBuffer::Allocate(pool_bytes));
  }
  pool.place_.resize(frame_count);
  std::iota(pool.place_.begin(), pool.place_.end(), FrameId{0});
  pool.holds_.assign(frame_count, kNothing);
  pool.policy_ = MakeNonePolicy();
  return pool;
}

void BufferPool::SetPolicy(std::unique_ptr<Policy> policy) {
  policy_ = policy != nullptr ? std::move(policy) : MakeNonePolicy();
}

std::vector<std::pair<CacheKey, FrameId>> BufferPool::Prefill() {
  std::vector<std::pair<CacheKey, FrameId>> prefill = policy_->Prefill();
  counters_.prefill += prefill.size();
  std::sort(prefill.begin(), prefill.end());
  const std::vector<std::pair<CacheKey, FrameId>> held = HeldByKey(holds_);

  // Frames whose key is held are named after its place; the others get the places that are left.
  std::vector<FrameId> places(frame_count_, kNoPlace);
  std::vector<bool> taken(frame_count_, false);
  auto there = held.begin();
  std::size_t missing = 0;
  for (const auto& [key, frame] : prefill) {
    while (there != held.end() && there->first < key) ++there;
    if (there == held.end() || there->first != key) {
      prefill[missing++] = {key, frame};
      continue;
    }
    places[frame] = there->second;
    taken[there->second] = true;
  }
  counters_.kept += prefill.size() - missing;
  prefill.resize(missing);
  FrameId next = 0;
  for (FrameId& place : places) {
    if (place != kNoPlace) continue;
    while (taken[next]) ++next;
    place = next++;
  }
  place_ = std::move(places);
  for (const auto& [key, frame] : prefill) holds_[place_[frame]] = key;
  return prefill;
}

void BufferPool::Plan(std::span<const CacheKey> keys, StepPlan& plan) {
  policy_->Step(keys, plan);
  RHIZOME_CHECK(plan.hits.size() + plan.misses.size() == keys.size());
  counters_.requests += keys.size();
  counters_.hits += plan.hits.size();
  counters_.misses += plan.misses.size();
}

std::span<std::byte> BufferPool::frame(FrameId frame) const {
  RHIZOME_CHECK(frame < frame_count_);
  return memory_.bytes().subspan(place_[frame] * frame_bytes_, frame_bytes_);
}

std::span<std::byte> BufferPool::Fill(CacheKey key, FrameId frame) {
  const std::span<std::byte> bytes = this->frame(frame);
  holds_[place_[frame]] = key;
  return bytes;
}

void BufferPool::Forget() { std::fill(holds_.begin(), holds_.end(), kNothing); }

}  // namespace rhizome
