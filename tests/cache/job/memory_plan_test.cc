#include "cache/job/memory_plan.h"

#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kOneMiB = std::uint64_t{1} << 20;

/// Needs of a job whose lists are on disk.
MemoryNeeds ListsOnDiskNeeds(std::uint64_t lists_bytes) {
  return {.working_bytes = 100 * kOneMiB,
          .schedule_bytes = 4 * kOneMiB,
          .cacheable_bytes = 4096 * kOneMiB,
          .minibatches = 1000,
          .neighbor_full_bytes = lists_bytes,
          .neighbor_table_bytes = kOneMiB,
          .neighbor_build_bytes = kOneMiB,
          .swept_bytes = 3 * kOneMiB};
}

std::uint64_t TotalOf(const JobMemoryPlan& plan, const MemoryNeeds& needs) {
  return needs.held_bytes + needs.working_bytes + plan.neighbor_cache_bytes + plan.cache_bytes +
         plan.superbatch * needs.schedule_bytes + (plan.swept - 1) * needs.swept_bytes;
}

TEST(MemoryPlanTest, MinibatchesAreSampledTogetherWhenTheListsDoNotFit) {
  const MemoryNeeds needs = ListsOnDiskNeeds(4096 * kOneMiB);
  std::uint32_t before = 1;
  for (const std::uint64_t limit : {160 * kOneMiB, 300 * kOneMiB, 1000 * kOneMiB, 2000 * kOneMiB}) {
    const auto plan = PlanMemory(limit, {}, needs);
    ASSERT_OK(plan);
    EXPECT_FALSE(plan->in_turn);
    EXPECT_EQ(plan->neighbor_cache_bytes, 0U);
    EXPECT_GE(plan->swept, before);
    EXPECT_LE(plan->swept, plan->superbatch);
    EXPECT_LE(TotalOf(*plan, needs), limit);
    before = plan->swept;
  }
  EXPECT_GT(before, 20U);
  // Without a limit, all lists are in memory while a superbatch is sampled.
  const auto in_turn = PlanMemory(0, {}, needs);
  ASSERT_OK(in_turn);
  EXPECT_TRUE(in_turn->in_turn);
  EXPECT_EQ(in_turn->swept, 1U);
  const auto beside = PlanMemory(0, {.in_turn = false}, needs);
  ASSERT_OK(beside);
  EXPECT_GT(beside->swept, 20U);
  EXPECT_LE(beside->swept, beside->superbatch);
}

TEST(MemoryPlanTest, ASuperbatchOfTheCallerLimitsThem) {
  const MemoryNeeds needs = ListsOnDiskNeeds(4096 * kOneMiB);
  const auto plan = PlanMemory(2000 * kOneMiB, {.superbatch = 7}, needs);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->superbatch, 7U);
  EXPECT_EQ(plan->swept, 7U);
  const auto with_cache =
      PlanMemory(400 * kOneMiB, {.cache_bytes = 200 * kOneMiB, .superbatch = 7}, needs);
  ASSERT_OK(with_cache);
  EXPECT_EQ(with_cache->cache_bytes, 200 * kOneMiB);
  EXPECT_LE(TotalOf(*with_cache, needs), 400 * kOneMiB);
}

/// Under any limit that suffices, with any values of the caller.
TEST(MemoryPlanTest, NoPlanExceedsTheLimit) {
  MemoryNeeds needs = ListsOnDiskNeeds(4096 * kOneMiB);
  for (const std::uint64_t min_cache : {std::uint64_t{0}, 30 * kOneMiB}) {
    needs.min_cache_bytes = min_cache;
    for (const std::uint32_t superbatch : {0U, 1U, 9U, 64U}) {
      for (const bool sized : {false, true}) {
        FixedMemory fixed{.superbatch = superbatch, .in_turn = false};
        if (sized) fixed.cache_bytes = 50 * kOneMiB;
        std::uint32_t planned = 0;
        for (std::uint64_t limit = 100 * kOneMiB; limit < 700 * kOneMiB; limit += kOneMiB) {
          const auto plan = PlanMemory(limit, fixed, needs);
          if (!plan) continue;
          ++planned;
          ASSERT_LE(TotalOf(*plan, needs), limit)
              << "superbatch " << superbatch << ", fixed cache " << sized;
          ASSERT_GE(plan->swept, 1U);
        }
        EXPECT_GT(planned, 100U);
      }
    }
  }
}

TEST(MemoryPlanTest, ListsThatFitAreCachedAndNotSwept) {
  const MemoryNeeds needs = ListsOnDiskNeeds(50 * kOneMiB);
  const auto plan = PlanMemory(1000 * kOneMiB, {}, needs);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->neighbor_cache_bytes, 50 * kOneMiB);
  EXPECT_EQ(plan->swept, 1U);
  const auto none =
      PlanMemory(1000 * kOneMiB, {.neighbor_cache_bytes = 0, .in_turn = false}, needs);
  ASSERT_OK(none);
  EXPECT_EQ(none->neighbor_cache_bytes, 0U);
  EXPECT_GT(none->swept, 1U);
}

TEST(MemoryPlanTest, ListsInMemoryAreNotSwept) {
  MemoryNeeds needs = ListsOnDiskNeeds(0);
  needs.swept_bytes = 0;
  const auto plan = PlanMemory(1000 * kOneMiB, {}, needs);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->swept, 1U);
}

}  // namespace
}  // namespace rhizome
