#include "cache/policy/schedule_history.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/replay.h"
#include "cache/policy/trace_testing.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

// Tests of ScheduleHistory, which carries the pool's contents and the uses of keys from one
// superbatch's schedule to the next.

namespace rhizome {
namespace {

using testing::FrameSimulator;
using testing::MakeTrace;
using testing::RandomTrace;

/// Returns random keys that a pool holds, in random order.
HeldKeys SomeHeld(std::mt19937_64& random, std::uint64_t key_count, std::uint32_t frame_count,
                  std::size_t classes) {
  std::vector<CacheKey> keys(key_count);
  std::iota(keys.begin(), keys.end(), 0);
  std::shuffle(keys.begin(), keys.end(), random);
  keys.resize(random() % (std::min<std::uint64_t>(key_count, frame_count) + 1));
  HeldKeys held{.keys = keys, .classes = {}};
  for (std::size_t i = 0; i < keys.size(); ++i)
    held.classes.push_back(static_cast<std::uint8_t>(random() % classes));
  return held;
}

AccessCosts SomeCosts(std::mt19937_64& random, const Trace& trace, std::size_t classes) {
  AccessCosts costs;
  if (classes == 1) return costs;
  costs.cost.clear();
  for (std::size_t c = 0; c < classes; ++c)
    costs.cost.push_back(1 + static_cast<float>(random() % 100));
  for (std::size_t a = 0; a < trace.keys.size(); ++a)
    costs.class_of.push_back(static_cast<std::uint8_t>(random() % classes));
  return costs;
}

std::vector<CacheKey> Sorted(std::vector<CacheKey> keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(ScheduleHistoryTest, APriorOfZeroChangesNoBitOfASchedule) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t key_count = 1 + random() % 60;
    const auto frame_count = static_cast<std::uint32_t>(random() % 40);
    const Trace trace = RandomTrace(random, 1 + random() % 20, key_count, 1 + random() % 20);
    const std::size_t classes = 1 + random() % 4;
    const AccessCosts costs = SomeCosts(random, trace, classes);
    const HeldKeys held = SomeHeld(random, key_count, frame_count, classes);
    const std::vector<std::uint32_t> zero(key_count, 0);
    const Schedule without = BuildSchedule(trace, *FindUses(trace, key_count), frame_count, costs);
    const Schedule with =
        BuildSchedule(trace, *FindUses(trace, key_count, held.keys), frame_count, costs,
                      {.prior = {.weight = zero, .chance_of_one = 1}, .held = &held});
    EXPECT_EQ(with.fates, without.fates) << "round " << round;
    EXPECT_EQ(with.prefill, without.prefill) << "round " << round;
    EXPECT_TRUE(with.held.keys.empty());
  }
}

std::uint64_t ReadsOf(const ReplayCounts& counts, const Policy& policy, const HeldKeys& held) {
  std::uint64_t reads = counts.misses;
  for (const auto& [key, frame] : policy.Prefill())
    reads += std::find(held.keys.begin(), held.keys.end(), key) == held.keys.end();
  return reads;
}

TEST(ScheduleHistoryTest, ReadsAreTheFewestFromWhatThePoolHolds) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 3000; ++round) {
    const auto key_count = static_cast<std::uint32_t>(2 + random() % 5);
    const auto frame_count = static_cast<std::uint32_t>(1 + random() % 5);
    ScheduleHistory history(key_count);
    for (int superbatch = 0; superbatch < 3; ++superbatch) {
      const Trace trace = RandomTrace(random, 1 + random() % 8, key_count, 1 + random() % 4);
      const HeldKeys held = history.held();
      std::uint32_t set = 0;
      for (const CacheKey key : held.keys) set |= 1U << key;
      auto policy = *MakeBeladySchedule(trace, frame_count, key_count, &history);
      FrameSimulator simulator(frame_count);
      const ReplayCounts counts = simulator.Play(*policy, trace);
      ASSERT_EQ(ReadsOf(counts, *policy, held),
                testing::OptimalReads(trace, frame_count, key_count, set))
          << "round " << round << ", superbatch " << superbatch;
    }
  }
}

/// The keys that the history reports as held are those in the frames at the end of the policy, for
/// schedules of both kinds.
TEST(ScheduleHistoryTest, HeldKeysAreThoseInTheFrames) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t key_count = 1 + random() % 80;
    const auto frame_count = static_cast<std::uint32_t>(1 + random() % 60);
    ScheduleHistory history(key_count);
    const PolicyOptions options{.kind = random() % 2 == 0 ? PolicyKind::kBelady : PolicyKind::kCost,
                                .frame_count = frame_count,
                                .key_count = key_count,
                                .unit_bytes = 64,
                                .cost = {.seconds_per_read = 1e-6, .bytes_per_second = 1e9},
                                .history = &history};
    for (int superbatch = 0; superbatch < 5; ++superbatch) {
      const Trace trace = RandomTrace(random, 1 + random() % 12, key_count, 1 + random() % 30);
      auto policy = *MakePolicy(options, trace);
      FrameSimulator simulator(frame_count);
      simulator.Play(*policy, trace);
      ASSERT_EQ(Sorted(history.held().keys),
                std::vector<CacheKey>(simulator.Resident().begin(), simulator.Resident().end()))
          << "round " << round << ", superbatch " << superbatch;
    }
  }
}

TEST(ScheduleHistoryTest, SaysWhichFramesAreDone) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t key_count = 1 + random() % 40;
    const auto frame_count = static_cast<std::uint32_t>(1 + random() % 30);
    ScheduleHistory history(key_count);
    for (int superbatch = 0; superbatch < 3; ++superbatch) {
      const Trace trace = RandomTrace(random, 1 + random() % 12, key_count, 1 + random() % 20);
      testing::ExpectDoneFramesAreKnown(
          **MakeBeladySchedule(trace, frame_count, key_count, &history), trace, frame_count);
    }
  }
}

TEST(ScheduleHistoryTest, TheMostUsedStayAndOfEqualOnesTheLatest) {
  ScheduleHistory history(6);
  // 0 is used three times, 1 twice, and 2, 3 and 4 once; 4 is the latest of these.
  const Trace trace = MakeTrace({{0, 1}, {0, 2}, {0, 1}, {3}, {4}});
  auto policy = *MakeBeladySchedule(trace, 3, 6, &history);
  EXPECT_EQ(Sorted(history.held().keys), (std::vector<CacheKey>{0, 1, 4}));
  // 5 is used once, less than 0 and 1, so it replaces 4.
  const Trace next = MakeTrace({{5}});
  policy = *MakeBeladySchedule(next, 3, 6, &history);
  EXPECT_EQ(Sorted(history.held().keys), (std::vector<CacheKey>{0, 1, 5}));
  std::set<CacheKey> prefill;  // 5 in the frame of 4, and 0 and 1, which remain
  for (const auto& [key, frame] : policy->Prefill()) prefill.insert(key);
  EXPECT_EQ(prefill, (std::set<CacheKey>{0, 1, 5}));
}

/// After the last step, no evicted key was used more often than a key that is held.
TEST(ScheduleHistoryTest, NoKeyThatStaysWasUsedLessThanOneThatLeaves) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t key_count = 2 + random() % 60;
    const auto frame_count = static_cast<std::uint32_t>(1 + random() % 30);
    ScheduleHistory history(key_count);
    std::map<CacheKey, int> uses;
    for (int superbatch = 0; superbatch < 4; ++superbatch) {
      const HeldKeys before = history.held();
      const Trace trace = RandomTrace(random, 1, key_count, 1 + random() % 20);
      for (const CacheKey key : trace.keys) ++uses[key];
      ASSERT_TRUE(MakeBeladySchedule(trace, frame_count, key_count, &history));
      const std::vector<CacheKey> held = Sorted(history.held().keys);
      std::vector<CacheKey> at_hand = before.keys;
      at_hand.insert(at_hand.end(), trace.keys.begin(), trace.keys.end());
      ASSERT_EQ(held.size(),
                std::min<std::size_t>(frame_count,
                                      std::set<CacheKey>(at_hand.begin(), at_hand.end()).size()));
      for (const CacheKey key : at_hand) {
        if (std::binary_search(held.begin(), held.end(), key)) continue;
        for (const CacheKey stays : held) ASSERT_GE(uses[stays], uses[key]) << "round " << round;
      }
    }
  }
}

TEST(ScheduleHistoryTest, DearKeysStayBeforeLikelyOnes) {
  // Keys 0 and 1 are equally likely, and reading 1 is 50 times as expensive.
  const std::vector<double> chances = {0.1, 0.1, 0.9};
  ScheduleHistory history{std::span(chances)};
  const Trace trace = MakeTrace({{0, 1, 2}});
  const AccessCosts costs{.class_of = {0, 1, 0}, .cost = {1, 50}};
  const Schedule one = BuildSchedule(trace, *FindUses(trace, 3), 1, costs, history.start());
  EXPECT_EQ(one.held.keys, (std::vector<CacheKey>{1}));
  EXPECT_EQ(one.held.ClassOf(0), 1U);
  const Schedule two = BuildSchedule(trace, *FindUses(trace, 3), 2, costs, history.start());
  EXPECT_EQ(Sorted(two.held.keys), (std::vector<CacheKey>{1, 2}));
}

TEST(ScheduleHistoryTest, APriorSavesReadsOfAPopularCoreInShortSuperbatches) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kKeys = 4000;
  const Trace trace = RandomTrace(random, 64, kKeys, 600);
  const PolicyOptions options{.frame_count = 500, .key_count = kKeys, .unit_bytes = 64, .cost = {}};
  const std::uint64_t none = ReplaySuperbatches(trace, 2, options)->rows;
  const std::uint64_t uses = ReplaySuperbatches(trace, 2, options, Prior::kUses)->rows;
  const std::uint64_t all = ReplaySuperbatches(trace, 64, options)->rows;
  EXPECT_LT(uses, none * 9 / 10);
  EXPECT_LE(all, uses);  // a schedule that knows the whole future reads least
}

}  // namespace
}  // namespace rhizome
