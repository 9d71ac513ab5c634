#include "cache/pool/buffer_pool.h"

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cache/policy/basic_policies.h"
#include "cache/policy/trace_testing.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

// Tests of BufferPool: frames and slots, held steps whose slots must not change, holders that wait
// for free slots, changes of policy, and reading ahead into frames that are done.

namespace rhizome {
namespace {

StepPlan Plan(BufferPool& pool, std::span<const CacheKey> keys) {
  StepPlan plan;
  EXPECT_OK(pool.Plan(keys, plan));
  return plan;
}

TEST(BufferPoolTest, FramesAreAlignedMemoryThatDoesNotOverlap) {
  Result<BufferPool> pool = BufferPool::Create(512, 8);
  ASSERT_OK(pool);
  EXPECT_EQ(pool->frame_bytes(), 512u);
  EXPECT_EQ(pool->frame_count(), 8u);
  for (FrameId f = 0; f < 8; ++f) std::memset(pool->Fill(f, f).data(), int(f), 512);
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
  ASSERT_OK(pool->SetPolicy(MakeLruPolicy(pool->frame_count(), 4)));
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
  ASSERT_OK(pool->SetPolicy(*MakeStaticPolicy(2, 4, keys)));
  const std::vector<PrefillEntry> prefill = pool->Prefill();
  EXPECT_EQ(prefill.size(), 2u);
  for (const auto& [key, frame] : prefill) pool->Fill(key, frame);
  EXPECT_EQ(Plan(*pool, keys).hits.size(), 2u);

  ASSERT_OK(pool->SetPolicy(MakeLruPolicy(2, 4)));
  EXPECT_TRUE(pool->Prefill().empty());
  const StepPlan first = Plan(*pool, keys);
  EXPECT_EQ(first.hits.size(), 0u);
  for (const StepPlan::Place& insert : first.inserts)
    pool->Fill(keys[insert.request], insert.frame);
  EXPECT_EQ(Plan(*pool, keys).hits.size(), 2u);  // the last two are still in memory

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
      pool->Fill(key, frame)[0] = static_cast<std::byte>(key);
    }
    return keys;
  };
  ASSERT_OK(pool->SetPolicy(*MakeStaticPolicy(3, 9, std::vector<CacheKey>{5, 6, 7})));
  EXPECT_EQ(read(), (std::vector<CacheKey>{5, 6, 7}));
  ASSERT_OK(pool->SetPolicy(*MakeStaticPolicy(3, 9, std::vector<CacheKey>{7, 8, 5})));
  EXPECT_EQ(read(), (std::vector<CacheKey>{8}));
  const std::vector<CacheKey> keys = {5, 7, 8};
  const StepPlan plan = Plan(*pool, keys);
  ASSERT_EQ(plan.hits.size(), 3u);
  for (const StepPlan::Place& hit : plan.hits)
    EXPECT_EQ(pool->frame(hit.frame)[0], static_cast<std::byte>(keys[hit.request]));
  EXPECT_EQ(pool->counters().prefill, 6u);
  EXPECT_EQ(pool->counters().kept, 2u);

  pool->Forget();
  ASSERT_OK(pool->SetPolicy(*MakeStaticPolicy(3, 9, std::vector<CacheKey>{5, 7, 8})));
  EXPECT_EQ(read(), (std::vector<CacheKey>{5, 7, 8}));
}

TEST(BufferPoolTest, WhatAStepHoldsStaysWhereItIsUntilItIsReleased) {
  Result<BufferPool> pool = BufferPool::Create(1, 2, {.slots = 4, .most = 4});
  ASSERT_OK(pool);
  ASSERT_OK(pool->SetPolicy(MakeLruPolicy(2, 9)));
  EXPECT_TRUE(pool->Prefill().empty());
  const auto hold = [&](const std::vector<CacheKey>& keys) {
    const StepPlan plan = Plan(*pool, keys);
    std::vector<SlotId> slots;
    EXPECT_OK(pool->Hold(keys, plan, slots));
    for (const std::uint32_t miss : plan.misses)
      pool->slot(slots[miss])[0] = static_cast<std::byte>(keys[miss]);
    return slots;
  };
  const std::vector<SlotId> first = hold({1, 2});
  const std::vector<SlotId> second = hold({2, 3});  // evicts 1
  const std::vector<SlotId> third = hold({4, 5});   // evicts 2 and 3
  EXPECT_EQ(second[0], first[1]) << "a hit is where it was";
  EXPECT_TRUE(pool->is_held());
  const std::vector<std::pair<SlotId, int>> all = {
      {first[0], 1}, {first[1], 2}, {second[1], 3}, {third[0], 4}, {third[1], 5}};
  for (const auto& [slot, key] : all) EXPECT_EQ(pool->slot(slot)[0], static_cast<std::byte>(key));
  pool->Release(first);
  EXPECT_EQ(pool->slot(second[0])[0], std::byte{2}) << "the second step holds it still";
  pool->Release(second);
  const std::vector<SlotId> fourth = hold({6, 7, 8});  // uses the free slots
  EXPECT_EQ(std::set<SlotId>(fourth.begin(), fourth.end()).size(), 3u);
  for (const SlotId slot : fourth) {
    EXPECT_NE(slot, third[0]);
    EXPECT_NE(slot, third[1]);
  }
  pool->Release(third);
  pool->Release(fourth);
  EXPECT_FALSE(pool->is_held());
}

TEST(BufferPoolTest, HoldersWaitForRoomButNotForThemselves) {
  Result<BufferPool> pool = BufferPool::Create(1, 0, {.slots = 2, .most = 5});
  ASSERT_OK(pool);
  const std::vector<CacheKey> three = {1, 2, 3};
  std::vector<SlotId> first;
  // No slots are held, so waiting would never end.
  ASSERT_OK(pool->Hold(three, Plan(*pool, three), first));
  const std::vector<CacheKey> one = {4};
  std::vector<SlotId> second;
  std::thread releasing([&] { pool->Release(first); });
  ASSERT_OK(pool->Hold(one, Plan(*pool, one), second));
  releasing.join();
  pool->SetStarved(true);  // the thread that holds also has to release, so it must not wait
  std::vector<SlotId> third, fourth;
  ASSERT_OK(pool->Hold(three, Plan(*pool, three), third));
  EXPECT_STATUS(pool->Hold(three, Plan(*pool, three), fourth), kOutOfMemory);
  pool->SetStarved(false);
  pool->Cancel();
  EXPECT_STATUS(pool->Hold(one, Plan(*pool, one), fourth), kInterrupted);
}

TEST(BufferPoolTest, ThePrefillToComeIsReadIntoWhatIsDone) {
  Result<BufferPool> pool = BufferPool::Create(16, 3, {.slots = 4, .most = 4});
  ASSERT_OK(pool);
  const Trace now = testing::MakeTrace({{0, 1, 2}, {1, 2}, {2}, {2}});
  const Trace next = testing::MakeTrace({{0, 1, 7}});
  const auto policy = *MakePolicy({.frame_count = 3, .key_count = 8, .cost = {}}, next);
  ASSERT_OK(pool->SetPolicy(*MakePolicy({.frame_count = 3, .key_count = 8, .cost = {}}, now)));
  for (const auto& [key, frame] : pool->Prefill()) pool->Fill(key, frame);
  pool->Announce(*policy);
  std::vector<SlotId> slots;
  const auto step = [&](std::size_t s) {
    const std::vector<CacheKey> keys(now.step(s).begin(), now.step(s).end());
    ASSERT_OK(pool->Hold(keys, Plan(*pool, keys), slots));
    pool->Release(slots);
  };
  EXPECT_TRUE(pool->TakeAhead(1, 9).empty());  // every row is still needed
  step(0);
  EXPECT_TRUE(pool->TakeAhead(1, 9).empty());  // 0 is done, and kept
  step(1);
  step(2);
  EXPECT_TRUE(pool->TakeAhead(1, 9).empty());  // 1 is done and kept, too; 2 is not done
  step(3);
  // frees the only remaining frame, although 5 are allowed
  const auto taken = pool->TakeAhead(5, 9);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].first, 7);
  ASSERT_OK(pool->SetPolicy(*MakePolicy({.frame_count = 3, .key_count = 8, .cost = {}}, next)));
  EXPECT_TRUE(pool->Prefill().empty());
  EXPECT_EQ(pool->counters().kept, 2u);
  EXPECT_EQ(pool->counters().reads() - pool->counters().kept, 4u);  // 0, 1, 2 and 7
}

// Rows that are read ahead are not read again, and the current policy loses no frame to them.
TEST(BufferPoolTest, ReadingAheadCostsNoReads) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kKeys = 60;
  std::array<std::uint64_t, 2> total = {};
  for (int round = 0; round < 200; ++round) {
    const auto frames = static_cast<std::uint32_t>(random() % 40);
    std::vector<Trace> traces;
    for (int superbatch = 0; superbatch < 5; ++superbatch)
      traces.push_back(testing::RandomTrace(random, 8, kKeys, 25));
    std::array<std::uint64_t, 2> reads = {};
    for (const bool ahead : {false, true}) {
      Result<BufferPool> pool =
          BufferPool::Create(sizeof(CacheKey), frames, {.slots = 25, .most = 25});
      ASSERT_OK(pool);
      std::vector<std::unique_ptr<Policy>> policies;
      for (const Trace& trace : traces)
        policies.push_back(
            *MakePolicy({.frame_count = frames, .key_count = kKeys, .cost = {}}, trace));
      for (std::size_t p = 0; p < traces.size(); ++p) {
        ASSERT_OK(pool->SetPolicy(std::move(policies[p])));
        const auto prefill = pool->Prefill();
        reads[ahead] += prefill.size();
        for (const auto& [key, frame] : prefill) pool->Fill(key, frame);
        for (std::size_t s = 0; s < traces[p].steps(); ++s) {
          const std::vector<CacheKey> keys(traces[p].step(s).begin(), traces[p].step(s).end());
          const StepPlan plan = Plan(*pool, keys);
          std::vector<SlotId> slots;
          ASSERT_OK(pool->Hold(keys, plan, slots));
          reads[ahead] += plan.misses.size();
          pool->Release(slots);
          if (!ahead || p + 1 == traces.size() || random() % 3 == 0) continue;
          if (!pool->announced()) pool->Announce(*policies[p + 1]);
          reads[ahead] += pool->TakeAhead(random() % 4, 1 + random() % 20).size();
        }
      }
      EXPECT_EQ(pool->counters().reads() - pool->counters().kept, reads[ahead]);
    }
    total[0] += reads[0];
    total[1] += reads[1];
  }
  // A few more reads occur if reading ahead uses the slot of a row that the next superbatch would
  // have found by chance.
  EXPECT_LE(total[1], total[0] + total[0] / 100);
}

// A model tracks the contents of each slot while steps are held and released in random order and
// policies change.
TEST(BufferPoolTest, NoSlotChangesWhileItIsHeld) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kKeys = 60;
  for (int round = 0; round < 80; ++round) {
    const auto frames = static_cast<std::uint32_t>(random() % 30);
    Result<BufferPool> pool =
        BufferPool::Create(sizeof(CacheKey), frames, {.slots = 80, .most = 2000});
    ASSERT_OK(pool);
    const auto bytes = [&](SlotId slot) {
      CacheKey key = 0;
      std::memcpy(&key, pool->slot(slot).data(), sizeof(key));
      return key;
    };
    std::vector<std::pair<std::vector<CacheKey>, std::vector<SlotId>>> held;
    constexpr std::size_t kSuperbatches = 4;
    std::vector<Trace> traces;
    std::vector<std::unique_ptr<Policy>> policies;
    for (std::size_t p = 0; p < kSuperbatches; ++p) {
      traces.push_back(testing::RandomTrace(random, 8, kKeys, 25));
      constexpr std::array kKinds = {PolicyKind::kBelady, PolicyKind::kBelady, PolicyKind::kLru,
                                     PolicyKind::kS3Fifo, PolicyKind::kMatch,  PolicyKind::kStatic,
                                     PolicyKind::kNone};
      policies.push_back(*MakePolicy({.kind = kKinds[random() % kKinds.size()],
                                      .frame_count = frames,
                                      .key_count = kKeys,
                                      .cost = {}},
                                     traces.back()));
    }
    for (std::size_t p = 0; p < kSuperbatches; ++p) {
      const Trace& trace = traces[p];
      ASSERT_OK(pool->SetPolicy(std::move(policies[p])));
      pool->SetStarved(true);
      const auto prefill = pool->Prefill();
      for (const auto& [key, frame] : prefill) {
        const auto room = pool->WaitForSpace(1, 1);
        ASSERT_OK(room);
        std::memcpy(pool->Fill(key, frame).data(), &key, sizeof(key));
      }
      for (std::size_t s = 0; s < trace.steps(); ++s) {
        const std::vector<CacheKey> keys(trace.step(s).begin(), trace.step(s).end());
        const StepPlan plan = Plan(*pool, keys);
        std::vector<SlotId> slots;
        ASSERT_OK(pool->Hold(keys, plan, slots));
        for (const std::uint32_t miss : plan.misses)
          std::memcpy(pool->slot(slots[miss]).data(), &keys[miss], sizeof(CacheKey));
        held.emplace_back(keys, slots);
        if (p + 1 < kSuperbatches && random() % 2 == 0) {
          if (!pool->announced()) pool->Announce(*policies[p + 1]);
          for (const auto& [key, slot] : pool->TakeAhead(random() % 4, 1 + random() % 20))
            std::memcpy(pool->slot(slot).data(), &key, sizeof(key));
        }
        for (const auto& [wanted, where] : held) {
          for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(bytes(where[i]), wanted[i]);
        }
        while (held.size() > random() % 6) {
          const std::size_t done = random() % held.size();
          pool->Release(held[done].second);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(done));
        }
      }
    }
  }
}

TEST(BufferPoolDeathTest, AFrameOutOfRangeIsABug) {
  Result<BufferPool> pool = BufferPool::Create(16, 2);
  ASSERT_OK(pool);
  EXPECT_DEATH(static_cast<void>(pool->Fill(0, 2)), "RHIZOME_CHECK");
  EXPECT_DEATH(static_cast<void>(pool->frame(1)), "RHIZOME_CHECK");  // the frame is empty
}

TEST(BufferPoolTest, RefusesAPolicyThatWasMadeForAnotherPool) {
  Result<BufferPool> pool = BufferPool::Create(512, 2);
  ASSERT_OK(pool);
  EXPECT_STATUS(pool->SetPolicy(*MakeStaticPolicy(3, 9, std::vector<CacheKey>{5, 6, 7})),
                kInvalidArgument);
  EXPECT_TRUE(pool->Prefill().empty());
  StepPlan plan;
  ASSERT_OK(pool->SetPolicy(MakeLruPolicy(3, 9)));
  EXPECT_STATUS(pool->Plan(std::vector<CacheKey>{0, 1, 2}, plan), kInvalidArgument);
  ASSERT_OK(pool->SetPolicy(MakeLruPolicy(2, 9)));
  EXPECT_STATUS(pool->Plan(std::vector<CacheKey>{0, 9}, plan), kInvalidArgument);
  // A hit in a frame that was never filled.
  ASSERT_OK(pool->SetPolicy(*MakeStaticPolicy(2, 9, std::vector<CacheKey>{5, 6})));
  EXPECT_EQ(pool->Prefill().size(), 2u);
  EXPECT_STATUS(pool->Plan(std::vector<CacheKey>{5}, plan), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
