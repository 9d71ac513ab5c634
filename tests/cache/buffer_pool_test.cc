#include "rhizome/cache/buffer_pool.h"

#include <cstring>
#include <limits>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

StepPlan Plan(BufferPool& pool, std::span<const CacheKey> keys) {
  StepPlan plan;
  pool.Plan(keys, plan);
  return plan;
}

TEST(BufferPoolTest, FramesAreAlignedMemoryThatDoesNotOverlap) {
  Result<BufferPool> pool = BufferPool::Create(512, 8);
  ASSERT_OK(pool);
  EXPECT_EQ(pool->frame_bytes(), 512u);
  EXPECT_EQ(pool->frame_count(), 8u);
  for (FrameId f = 0; f < 8; ++f) std::memset(pool->frame(f).data(), int(f), 512);
  for (FrameId f = 0; f < 8; ++f) {
    EXPECT_EQ(pool->frame(f).size(), 512u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool->frame(f).data()) % 512, 0u);
    EXPECT_EQ(pool->frame(f).front(), std::byte(f));
    EXPECT_EQ(pool->frame(f).back(), std::byte(f));
  }
}

TEST(BufferPoolTest, MoreMemoryThanThereIsIsAnError) {
  EXPECT_STATUS(BufferPool::Create(std::numeric_limits<std::size_t>::max() / 2, 8), kOutOfMemory);
#ifndef RHIZOME_SANITIZED  // the sanitizer's allocator stops the process instead
  EXPECT_STATUS(BufferPool::Create(std::size_t{1} << 44, 1u << 10), kOutOfMemory);
#endif
}

TEST(BufferPoolTest, APoolMayBeEmpty) {
  Result<BufferPool> pool = BufferPool::Create(512, 0);
  ASSERT_OK(pool);
  pool->SetPolicy(MakeLruPolicy(pool->frame_count(), 4));
  EXPECT_EQ(Plan(*pool, std::vector<CacheKey>{1, 3}).misses.size(), 2u);
}

TEST(BufferPoolTest, WithoutAPolicyEverythingIsMissed) {
  Result<BufferPool> pool = BufferPool::Create(16, 4);
  ASSERT_OK(pool);
  const std::vector<CacheKey> keys = {1, 3};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Plan(*pool, keys).misses, (std::vector<std::uint32_t>{0, 1}));
  }
  EXPECT_TRUE(pool->Prefill().empty());
}

TEST(BufferPoolTest, CountersAddUpOverPoliciesAndANewPolicyStartsEmpty) {
  Result<BufferPool> pool = BufferPool::Create(16, 2);
  ASSERT_OK(pool);
  const std::vector<CacheKey> keys = {0, 1, 2};
  pool->SetPolicy(MakeStaticPolicy(2, 4, keys));
  EXPECT_EQ(pool->Prefill().size(), 2u);
  EXPECT_EQ(Plan(*pool, keys).hits.size(), 2u);

  pool->SetPolicy(MakeLruPolicy(2, 4));
  EXPECT_TRUE(pool->Prefill().empty());
  EXPECT_EQ(Plan(*pool, keys).hits.size(), 0u);
  EXPECT_EQ(Plan(*pool, keys).hits.size(), 2u);  // the last two stayed

  EXPECT_EQ(pool->counters().requests, 9u);
  EXPECT_EQ(pool->counters().prefill, 2u);
  EXPECT_EQ(pool->counters().hits, 4u);
  EXPECT_EQ(pool->counters().misses, 5u);
  EXPECT_EQ(pool->counters().reads(), 7u);
}

TEST(BufferPoolTest, ANewPolicyFindsWhatIsStillThereAndReadsTheRest) {
  Result<BufferPool> pool = BufferPool::Create(1, 3);
  ASSERT_OK(pool);
  const auto read = [&] {
    std::vector<CacheKey> keys;
    for (const auto& [key, frame] : pool->Prefill()) {
      keys.push_back(key);
      pool->frame(frame)[0] = static_cast<std::byte>(key);
    }
    return keys;
  };
  pool->SetPolicy(MakeStaticPolicy(3, 9, std::vector<CacheKey>{5, 6, 7}));
  EXPECT_EQ(read(), (std::vector<CacheKey>{5, 6, 7}));
  pool->SetPolicy(MakeStaticPolicy(3, 9, std::vector<CacheKey>{7, 8, 5}));
  EXPECT_EQ(read(), (std::vector<CacheKey>{8}));
  const std::vector<CacheKey> keys = {5, 7, 8};
  const StepPlan plan = Plan(*pool, keys);
  ASSERT_EQ(plan.hits.size(), 3u);
  for (const StepPlan::Place& hit : plan.hits)
    EXPECT_EQ(pool->frame(hit.frame)[0], static_cast<std::byte>(keys[hit.request]));
  EXPECT_EQ(pool->counters().prefill, 6u);
  EXPECT_EQ(pool->counters().kept, 2u);

  pool->Forget();
  pool->SetPolicy(MakeStaticPolicy(3, 9, std::vector<CacheKey>{5, 7, 8}));
  EXPECT_EQ(read(), (std::vector<CacheKey>{5, 7, 8}));
}

TEST(BufferPoolDeathTest, AFrameOutOfRangeIsABug) {
  Result<BufferPool> pool = BufferPool::Create(16, 2);
  ASSERT_OK(pool);
  EXPECT_DEATH(static_cast<void>(pool->frame(2)), "RHIZOME_CHECK");
}

}  // namespace
}  // namespace rhizome
