#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/metrics.h"
#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// Caches blocks of files in bounded memory. A table with one slot for each block replaces hashing.
/// Eviction is CLOCK with counts: a hit adds a life, up to 3, and the hand removes one life at each
/// pass. A new block has no lives, so that blocks that are read once are evicted first.
///
/// A hit takes no lock: it pins the frame, copies, and unpins. If all blocks fit, none is ever
/// evicted, and a hit pins nothing. On a miss the caller reads the block without holding a lock and
/// inserts it; Insert locks one of a few shards.
///
/// Memory: the frames and 4 bytes for each block of the files, at most memory_bytes. The system
/// provides pages when they are first used. If memory_bytes cannot hold the table and one frame,
/// nothing is cached.
/// Threads: any.
/// Ownership: `metrics` (null: none) must outlive the cache.
class BlockCache {
 public:
  struct Options {
    std::uint64_t block_count = 0;
    std::uint64_t block_bytes = 4096;
    std::uint64_t memory_bytes = 0;
    std::uint32_t max_shards = 16;
    Metrics* metrics = nullptr;
    Counter evictions = Counter::kRowCacheEvictions;
  };
  explicit BlockCache(const Options& options);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// Copies out.size() bytes at `offset` of a block; false if the block is not cached.
  bool Read(std::uint64_t block, std::uint64_t offset, std::span<std::byte> out) const;
  /// Prefetches the memory that Read of `bytes` at `offset` of a block will access, so that the
  /// processor's cache misses of many reads overlap. It may be called for any block.
  void Prefetch(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes) const;
  bool Holds(std::uint64_t block) const {
    return block < slots_.size() && slots_[block].load(std::memory_order_acquire) != kNone;
  }

  enum class Room : std::uint8_t {
    kMake,  ///< evict another block if necessary
    kFree,  ///< use only a free frame; for blocks that were read along with the requested one
  };

  /// Caches a block of up to block_bytes. Returns true if the block is cached now or was before,
  /// false if no frame was available.
  bool Insert(std::uint64_t block, std::span<const std::byte> bytes, Room room = Room::kMake);

  /// Returns the number of frames that never held a block.
  std::uint64_t free_frames() const;

  bool holds_all() const { return fixed_; }  ///< there is a frame for every block
  std::uint64_t frame_count() const { return frame_count_; }
  std::uint64_t block_bytes() const { return block_bytes_; }
  Metrics* metrics() const { return metrics_; }

  /// Returns the memory of a cache that holds all blocks.
  static std::uint64_t FullBytes(std::uint64_t block_count, std::uint64_t block_bytes);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kEvicting = std::uint32_t{1} << 31;
  static constexpr std::uint8_t kMaxLives = 3;  // maximum number of lives of a block

  // `pins` counts the readers of the frame; kEvicting is set while an Insert owns it.
  struct Frame {
    std::atomic<std::uint32_t> pins{0};
    std::atomic<std::uint8_t> lives{0};
    std::atomic<std::uint64_t> block{UINT64_MAX};
  };
  struct Shard {
    mutable ForkMutex mutex;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t used RHIZOME_GUARDED_BY(mutex) = 0;  // frames that ever held a block
    std::uint32_t hand RHIZOME_GUARDED_BY(mutex) = 0;
  };
  static constexpr std::uint64_t kFrameOverhead = sizeof(Frame);

  Shard& ShardOf(std::uint64_t block) const { return shards_[block % shard_count_]; }
  std::uint32_t TakeFrame(Shard& shard, Room room) RHIZOME_REQUIRES(shard.mutex);
  std::uint32_t Evict(Shard& shard) RHIZOME_REQUIRES(shard.mutex);
  std::byte* BytesOf(std::uint32_t frame) const { return bytes_.get() + frame * block_bytes_; }
  void Used(std::int64_t bytes);

  const std::uint64_t block_bytes_;
  Metrics* const metrics_;
  const Counter evictions_;
  std::vector<std::atomic<std::uint32_t>> slots_;  // frame of each block, or kNone
  std::uint64_t frame_count_ = 0;
  bool fixed_ = false;  // block b has frame b
  std::unique_ptr<Frame[]> frames_;
  std::unique_ptr<std::byte[]> bytes_;  // not zeroed, so that unused pages take no memory
  std::uint32_t shard_count_ = 1;
  std::unique_ptr<Shard[]> shards_;
  std::atomic<std::int64_t> used_bytes_{0};
};

}  // namespace internal
}  // namespace rhizome
