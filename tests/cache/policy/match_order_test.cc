#include "cache/policy/match_order.h"

#include <algorithm>
#include <numeric>

#include "cache/policy/basic_policies.h"
#include "cache/policy/trace_testing.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::MakeTrace;
using testing::RandomTrace;

/// Returns the number of keys in both, by searching.
std::size_t Shared(std::span<const CacheKey> a, std::span<const CacheKey> b) {
  return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [b](CacheKey key) {
    return std::find(b.begin(), b.end(), key) != b.end();
  }));
}

/// Computes the same order naively: each time, it chooses the first of the remaining steps of a
/// window that shares the most keys with the step chosen last.
std::vector<std::uint32_t> NaiveOrder(const Trace& trace, std::size_t window) {
  std::vector<std::uint32_t> order;
  for (std::size_t begin = 0; begin < trace.steps(); begin += window) {
    std::vector<std::uint32_t> left(std::min(window, trace.steps() - begin));
    std::iota(left.begin(), left.end(), static_cast<std::uint32_t>(begin));
    while (!left.empty()) {
      const auto shared = [&](std::uint32_t step) {
        return order.empty() ? 0 : Shared(trace.step(step), trace.step(order.back()));
      };
      const auto best =
          std::max_element(left.begin(), left.end(),
                           [&](std::uint32_t a, std::uint32_t b) { return shared(a) < shared(b); });
      order.push_back(*best);
      left.erase(best);
    }
  }
  return order;
}

TEST(MatchOrderTest, TheNextStepIsTheOneThatSharesMost) {
  const Trace trace = MakeTrace({{0, 1, 2}, {3, 4, 5}, {4, 5, 6}, {1, 2, 3}});
  // Step 3 shares two keys with step 0; then 1 shares one with 3; then only 2 remains.
  EXPECT_EQ(*MatchOrder(trace, 7), (std::vector<std::uint32_t>{0, 3, 1, 2}));
  // The second window starts with the step that shares the most keys with the end of the first.
  EXPECT_EQ(*MatchOrder(trace, 7, 2), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  const Trace turned = MakeTrace({{0, 1, 2}, {3, 4, 5}, {1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(*MatchOrder(turned, 7, 2), (std::vector<std::uint32_t>{0, 1, 3, 2}));
}

TEST(MatchOrderTest, EqualsChosenBySearchOnRandomTraces) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t key_count = 1 + random() % 150;
    const Trace trace = RandomTrace(random, random() % 20, key_count, 1 + random() % 30);
    const std::size_t window = 1 + random() % 25;
    ASSERT_EQ(*MatchOrder(trace, key_count, window), NaiveOrder(trace, window));
  }
}

TEST(MatchOrderTest, EveryStepStaysInItsWindowAndKeepsItsKeys) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 100; ++round) {
    const Trace trace = RandomTrace(random, 30, 100, 20);
    const std::size_t window = 1 + random() % 12;
    const std::vector<std::uint32_t> order = *MatchOrder(trace, 100, window);
    ASSERT_EQ(order.size(), trace.steps());
    std::vector<bool> seen(order.size(), false);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i] / window, i / window);
      seen[order[i]] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
    const Trace reordered = *Reordered(trace, order);
    ASSERT_EQ(reordered.steps(), trace.steps());
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(reordered.step(i), trace.step(order[i])));
    }
  }
}

TEST(MatchOrderTest, WithoutAWindowOrStepsNothingChanges) {
  const Trace trace = MakeTrace({{0}, {1}, {0}});
  const std::vector<std::uint32_t> as_it_was = {0, 1, 2};
  EXPECT_EQ(*MatchOrder(trace, 2, 0), as_it_was);
  EXPECT_EQ(*MatchOrder(trace, 2, 1), as_it_was);
  EXPECT_EQ(*MatchOrder(trace, 2, 100), (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_TRUE(MatchOrder(Trace{}, 0)->empty());
}

TEST(MatchOrderTest, MatchReadsLessWhereGroupsAlternate) {
  // Two groups of steps alternate: neighbours share nothing, every other step shares all keys.
  Trace trace;
  for (int s = 0; s < 8; ++s) {
    const CacheKey first = s % 2 * 10;
    trace.AddStep(std::vector<CacheKey>{first, first + 1, first + 2});
  }
  const auto reads = [](const Trace& of) { return Replay(*MakeMatchPolicy(3, 20), of)->reads(); };
  EXPECT_EQ(reads(trace), 24u);
  EXPECT_EQ(reads(*Reordered(trace, *MatchOrder(trace, 20))), 6u);
}

TEST(MatchOrderTest, RefusesKeysAndStepsThatThereAreNot) {
  const Trace trace = MakeTrace({{0, 5}, {1}});
  EXPECT_STATUS(MatchOrder(trace, 5), kInvalidArgument);
  EXPECT_STATUS(Reordered(trace, std::vector<std::uint32_t>{0, 2}), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
