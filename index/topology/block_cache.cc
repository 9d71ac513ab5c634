// A sharded CLOCK cache of file blocks. Read looks up the frame of a block in a table, pins the
// frame, and checks that it still holds the block before it copies. Insert locks the shard of the
// block and uses, in this order: the block's fixed frame if all blocks fit, a frame that never held
// a block, or a frame that Evict frees.

#include "index/topology/block_cache.h"

#include <algorithm>
#include <cstring>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::uint64_t kSlotBytes = sizeof(std::atomic<std::uint32_t>);

// Smaller shards would start to evict long before the whole cache is full.
constexpr std::uint64_t kMinShardFrames = 64;

// The hardware prefetcher fetches the following lines after the first few lines of a row.
constexpr std::uint64_t kLineBytes = 64;
constexpr std::uint64_t kMaxPrefetched = 8 * kLineBytes;

}  // namespace

std::uint64_t BlockCache::FullBytes(std::uint64_t block_count, std::uint64_t block_bytes) {
  return block_count * (kSlotBytes + kFrameOverhead + block_bytes);
}

BlockCache::BlockCache(const Options& options)
    : block_bytes_(options.block_bytes), metrics_(options.metrics), evictions_(options.evictions) {
  const std::uint64_t table_bytes = options.block_count * kSlotBytes;
  if (options.block_count == 0 || options.block_bytes == 0 || table_bytes > options.memory_bytes)
    return;
  frame_count_ = std::min({(options.memory_bytes - table_bytes) / (kFrameOverhead + block_bytes_),
                           options.block_count, std::uint64_t{kEvicting} - 1});
  if (frame_count_ == 0) return;
  slots_ = std::vector<std::atomic<std::uint32_t>>(options.block_count);
  for (auto& slot : slots_) slot.store(kNone, std::memory_order_relaxed);
  fixed_ = frame_count_ == options.block_count;
  frames_ = std::make_unique<Frame[]>(frame_count_);
  bytes_.reset(new std::byte[frame_count_ * block_bytes_]);
  shard_count_ = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(frame_count_ / kMinShardFrames, 1, options.max_shards));
  shards_ = std::make_unique<Shard[]>(shard_count_);
  for (std::uint32_t s = 0; s < shard_count_; ++s) {
    const auto first = static_cast<std::uint32_t>(frame_count_ * s / shard_count_);
    shards_[s].first = first;
    shards_[s].count = static_cast<std::uint32_t>(frame_count_ * (s + 1) / shard_count_) - first;
  }
  Used(static_cast<std::int64_t>(table_bytes));
}

BlockCache::~BlockCache() { Used(-used_bytes_.load()); }

void BlockCache::Used(std::int64_t bytes) {
  used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (metrics_ != nullptr) metrics_->Change(Gauge::kCacheBytes, bytes);
}

bool BlockCache::Read(std::uint64_t block, std::uint64_t offset, std::span<std::byte> out) const {
  if (block >= slots_.size()) return false;
  const std::uint32_t number = slots_[block].load(std::memory_order_acquire);
  if (number == kNone) return false;
  RHIZOME_DCHECK(number < frame_count_ && offset + out.size() <= block_bytes_);
  if (fixed_) {
    std::memcpy(out.data(), BytesOf(number) + offset, out.size());
    return true;
  }
  Frame& frame = frames_[number];
  // A pin keeps the block in its frame, but the frame may have been reused before the pin.
  const std::uint32_t before = frame.pins.fetch_add(1, std::memory_order_acquire);
  const bool held =
      (before & kEvicting) == 0 && frame.block.load(std::memory_order_relaxed) == block;
  if (held) {
    std::memcpy(out.data(), BytesOf(number) + offset, out.size());
    const std::uint8_t lives = frame.lives.load(std::memory_order_relaxed);
    if (lives < kMaxLives)
      frame.lives.store(static_cast<std::uint8_t>(lives + 1), std::memory_order_relaxed);
  }
  frame.pins.fetch_sub(1, std::memory_order_release);
  return held;
}

// Prefetches the data only if all blocks fit: then the frame is known before the slot is read.
void BlockCache::Prefetch(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes) const {
  if (block >= slots_.size()) return;
  __builtin_prefetch(&slots_[block]);
  if (!fixed_) return;
  const std::byte* const begin = BytesOf(static_cast<std::uint32_t>(block)) + offset;
  for (std::uint64_t at = 0; at < std::min(bytes, kMaxPrefetched); at += kLineBytes)
    __builtin_prefetch(begin + at);
}

std::uint64_t BlockCache::free_frames() const {
  std::uint64_t free = frame_count_;
  for (std::uint32_t s = 0; frame_count_ > 0 && s < shard_count_; ++s) {
    const MutexLock lock(shards_[s].mutex);
    free -= shards_[s].used;
  }
  return free;
}

bool BlockCache::Insert(std::uint64_t block, std::span<const std::byte> bytes, Room room) {
  if (block >= slots_.size()) return false;
  Shard& shard = ShardOf(block);
  const MutexLock lock(shard.mutex);
  if (slots_[block].load(std::memory_order_relaxed) != kNone) return true;
  const auto number = fixed_ ? static_cast<std::uint32_t>(block) : TakeFrame(shard, room);
  if (number == kNone) return false;
  if (fixed_) {
    ++shard.used;
    Used(static_cast<std::int64_t>(block_bytes_ + kFrameOverhead));
  }
  RHIZOME_DCHECK(bytes.size() <= block_bytes_);
  RHIZOME_DCHECK(fixed_ || number - shard.first < shard.count);
  Frame& frame = frames_[number];
  std::memcpy(BytesOf(number), bytes.data(), bytes.size());
  frame.block.store(block, std::memory_order_relaxed);
  frame.lives.store(0, std::memory_order_relaxed);
  if (!fixed_) frame.pins.fetch_sub(kEvicting, std::memory_order_release);
  slots_[block].store(number, std::memory_order_release);
  return true;
}

// Returns a frame that holds no block and has kEvicting set; kNone if there is none.
std::uint32_t BlockCache::TakeFrame(Shard& shard, Room room) {
  if (shard.used < shard.count) {
    const std::uint32_t number = shard.first + shard.used++;
    frames_[number].pins.fetch_add(kEvicting, std::memory_order_acquire);
    Used(static_cast<std::int64_t>(block_bytes_ + kFrameOverhead));
    return number;
  }
  return room == Room::kMake ? Evict(shard) : kNone;
}

// After kMaxLives passes of the hand every frame has lost its lives, except frames that were hit
// or pinned during the passes.
std::uint32_t BlockCache::Evict(Shard& shard) {
  for (std::uint32_t step = 0; step < (kMaxLives + 1U) * shard.count; ++step) {
    const std::uint32_t number = shard.first + shard.hand;
    shard.hand = (shard.hand + 1) % shard.count;
    Frame& frame = frames_[number];
    const std::uint8_t lives = frame.lives.load(std::memory_order_relaxed);
    if (lives > 0) {
      frame.lives.store(static_cast<std::uint8_t>(lives - 1), std::memory_order_relaxed);
      continue;
    }
    std::uint32_t unpinned = 0;
    if (!frame.pins.compare_exchange_strong(unpinned, kEvicting, std::memory_order_acquire))
      continue;
    auto& slot = slots_[frame.block.load(std::memory_order_relaxed)];
    RHIZOME_DCHECK(slot.load(std::memory_order_relaxed) == number);
    slot.store(kNone, std::memory_order_relaxed);
    if (metrics_ != nullptr) metrics_->Add(evictions_);
    return number;
  }
  return kNone;
}

}  // namespace internal
}  // namespace rhizome
