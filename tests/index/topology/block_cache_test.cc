#include "index/topology/block_cache.h"

#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kBytes = 24;

// Returns the memory needed for `frames` frames, computed from the size of a cache of all blocks.
std::uint64_t MemoryFor(std::uint64_t blocks, std::uint64_t frames) {
  const std::uint64_t frame = BlockCache::FullBytes(1, kBytes) - sizeof(std::atomic<std::uint32_t>);
  return blocks * sizeof(std::atomic<std::uint32_t>) + frames * frame;
}

// Returns a block filled with copies of its number.
std::vector<std::byte> BlockOf(std::uint64_t number) {
  std::vector<std::byte> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; i += sizeof(number))
    std::memcpy(bytes.data() + i, &number, sizeof(number));
  return bytes;
}

bool ReadsAs(const BlockCache& cache, std::uint64_t number) {
  std::vector<std::byte> out(kBytes);
  if (!cache.Read(number, 0, out)) return false;
  EXPECT_EQ(out, BlockOf(number));
  return true;
}

/// A simple CLOCK cache with counters and one shard.
class Model {
 public:
  explicit Model(std::size_t frames) : frames_(frames) {}

  bool Read(std::uint64_t block) {
    for (auto& frame : frames_) {
      if (!frame || frame->block != block) continue;
      frame->lives = std::min(frame->lives + 1, 3);
      return true;
    }
    return false;
  }

  bool Holds(std::uint64_t block) const {
    for (const auto& frame : frames_)
      if (frame && frame->block == block) return true;
    return false;
  }

  bool Insert(std::uint64_t block, bool make_room) {
    if (Holds(block)) return true;
    for (auto& frame : frames_) {
      if (frame) continue;
      frame = Entry{block, 0};
      return true;
    }
    if (!make_room) return false;
    while (frames_[hand_]->lives > 0) {
      --frames_[hand_]->lives;
      hand_ = (hand_ + 1) % frames_.size();
    }
    frames_[hand_] = Entry{block, 0};
    hand_ = (hand_ + 1) % frames_.size();
    return true;
  }

 private:
  struct Entry {
    std::uint64_t block;
    int lives;
  };
  std::vector<std::optional<Entry>> frames_;
  std::size_t hand_ = 0;
};

TEST(BlockCacheTest, KeepsWhatTheModelKeeps) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t blocks = 2 + rng() % 40;
    const std::uint64_t frames = 1 + rng() % (blocks - 1);
    Metrics metrics;
    BlockCache cache({.block_count = blocks,
                      .block_bytes = kBytes,
                      .memory_bytes = MemoryFor(blocks, frames),
                      .max_shards = 1,
                      .metrics = &metrics});
    ASSERT_EQ(cache.frame_count(), frames);
    ASSERT_FALSE(cache.holds_all());
    Model model(frames);
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t block = std::min(rng() % blocks, rng() % blocks);
      if (rng() % 2 == 0) {
        ASSERT_EQ(ReadsAs(cache, block), model.Read(block));
      } else {
        const bool make_room = rng() % 3 != 0;
        ASSERT_EQ(cache.Insert(block, BlockOf(block),
                               make_room ? BlockCache::Room::kMake : BlockCache::Room::kFree),
                  model.Insert(block, make_room));
      }
      for (std::uint64_t b = 0; b < blocks; ++b) ASSERT_EQ(cache.Holds(b), model.Holds(b)) << step;
    }
    const auto used = static_cast<std::uint64_t>(metrics.Snapshot().of(Gauge::kCacheBytes));
    EXPECT_LE(used, MemoryFor(blocks, frames));
  }
}

TEST(BlockCacheTest, NeverEvictsWhereAllFit) {
  const std::uint64_t blocks = 300;
  BlockCache cache({.block_count = blocks,
                    .block_bytes = kBytes,
                    .memory_bytes = BlockCache::FullBytes(blocks, kBytes)});
  ASSERT_TRUE(cache.holds_all());
  for (std::uint64_t b = 0; b < blocks; ++b) {
    EXPECT_TRUE(cache.Insert(b, BlockOf(b), BlockCache::Room::kFree));
  }
  EXPECT_EQ(cache.free_frames(), 0U);
  for (std::uint64_t b = 0; b < blocks; ++b) EXPECT_TRUE(ReadsAs(cache, b));
  EXPECT_FALSE(ReadsAs(cache, blocks));
  EXPECT_FALSE(cache.Insert(blocks, BlockOf(blocks)));
}

TEST(BlockCacheTest, WithTooLittleMemoryItHoldsNothing) {
  for (const std::uint64_t memory : {std::uint64_t{0}, MemoryFor(10, 1) - 1}) {
    BlockCache cache({.block_count = 10, .block_bytes = kBytes, .memory_bytes = memory});
    EXPECT_EQ(cache.frame_count(), 0U);
    EXPECT_FALSE(cache.Insert(3, BlockOf(3)));
    EXPECT_FALSE(cache.Holds(3));
    EXPECT_EQ(cache.free_frames(), 0U);
  }
  BlockCache none({.block_count = 0, .memory_bytes = 1 << 20});
  EXPECT_FALSE(none.Insert(0, BlockOf(0)));
}

TEST(BlockCacheTest, AHotBlockOutlivesAScan) {
  BlockCache cache({.block_count = 1000,
                    .block_bytes = kBytes,
                    .memory_bytes = MemoryFor(1000, 10),
                    .max_shards = 1});
  EXPECT_TRUE(cache.Insert(0, BlockOf(0)));
  for (std::uint64_t b = 1; b < 1000; ++b) {
    EXPECT_TRUE(ReadsAs(cache, 0)) << b;
    EXPECT_TRUE(cache.Insert(b, BlockOf(b)));
  }
}

// Every read returns the requested block during concurrent evictions, also under the thread
// sanitizer.
TEST(BlockCacheTest, ManyThreadsReadWhileBlocksComeAndGo) {
  const std::uint64_t seed = testing::TestSeed();
  const std::uint64_t blocks = 400;
  BlockCache cache(
      {.block_count = blocks, .block_bytes = kBytes, .memory_bytes = MemoryFor(blocks, 130)});
  std::atomic<int> wrong{0};
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 rng(seed + t);
      std::vector<std::byte> out(kBytes);
      for (int i = 0; i < 5000; ++i) {
        const std::uint64_t block = std::min(rng() % blocks, rng() % blocks);
        if (!cache.Read(block, 0, out)) {
          cache.Insert(block, BlockOf(block));
          continue;
        }
        ++hits;
        if (out != BlockOf(block)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace rhizome
