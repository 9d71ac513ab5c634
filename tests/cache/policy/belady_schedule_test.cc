#include "cache/policy/belady_schedule.h"

#include <map>

#include "cache/policy/basic_policies.h"
#include "cache/policy/step_set.h"
#include "cache/policy/trace_testing.h"
#include "testing/testing.h"

// Tests of Belady's schedule: it reads as few rows as a brute-force optimum, and no other policy
// reads less; traces that differ from the one it was built for are refused.

namespace rhizome {
namespace {

using testing::FrameSimulator;
using testing::MakeTrace;
using testing::RandomTrace;

TEST(StepSetTest, MaxEqualsThatOfAnOrderedSet) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t size : {1, 2, 63, 64, 65, 4096, 4097, 300000}) {
    StepSet set(size);
    std::set<std::size_t> model;
    for (int i = 0; i < 3000; ++i) {
      const std::size_t member = random() % size;
      if (random() % 2 == 0) {
        set.Insert(member);
        model.insert(member);
      } else {
        set.Erase(member);
        model.erase(member);
      }
      ASSERT_EQ(set.empty(), model.empty());
      if (!model.empty()) {
        ASSERT_EQ(set.Max(), *model.rbegin());
      }
    }
  }
}

TEST(BeladyScheduleTest, KeepsWhatIsNeededSoonest) {
  // With one frame, 0 and 1 compete, and 0 is needed sooner. 2 is used once and not kept.
  const Trace trace = MakeTrace({{0}, {1}, {0}, {2}, {0}, {1}});
  auto policy = *MakeBeladySchedule(trace, 1, 3);
  const ReplayCounts counts = FrameSimulator(1).Play(*policy, trace);
  EXPECT_EQ(counts.prefill, 1u);
  EXPECT_EQ(counts.misses, 3u);
  EXPECT_EQ(counts.reads(), 4u);
}

TEST(BeladyScheduleTest, PrefillCostsNoMoreThanTheMissesItSaves) {
  const Trace trace = MakeTrace({{0, 1}, {2, 3}, {0, 1}});
  auto policy = *MakeBeladySchedule(trace, 3, 4);
  const ReplayCounts counts = FrameSimulator(3).Play(*policy, trace);
  EXPECT_EQ(counts.prefill, 3u);  // 0, 1 and one of the keys that are used once
  EXPECT_EQ(counts.reads(), 4u);
}

TEST(BeladyScheduleTest, AnEmptyTraceAndEmptyStepsAreFine) {
  const Trace none;
  EXPECT_EQ(FrameSimulator(2).Play(**MakeBeladySchedule(none, 2, 10), none).reads(), 0u);
  const Trace trace = MakeTrace({{}, {1}, {}, {1}, {}});
  EXPECT_EQ(FrameSimulator(2).Play(**MakeBeladySchedule(trace, 2, 2), trace).reads(), 1u);
}

TEST(BeladyScheduleTest, KeysMayBeFarMoreThanAccesses) {
  const CacheKey far = CacheKey{1} << 40;
  const Trace trace = MakeTrace({{far, 7}, {5, far}, {far - 1, 7}});
  auto policy = *MakeBeladySchedule(trace, 2, (std::uint64_t{1} << 40) + 1);
  EXPECT_EQ(FrameSimulator(2).Play(*policy, trace).reads(), 4u);
}

TEST(BeladyScheduleTest, ReadsEqualTheBruteForceOptimum) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 4000; ++round) {
    const std::uint32_t key_count = static_cast<std::uint32_t>(2 + random() % 5);
    const std::uint32_t frame_count = static_cast<std::uint32_t>(random() % 5);
    const Trace trace = RandomTrace(random, 1 + random() % 12, key_count, 1 + random() % 4);
    auto policy = *MakeBeladySchedule(trace, frame_count, key_count);
    const ReplayCounts counts = FrameSimulator(frame_count).Play(*policy, trace);
    ASSERT_EQ(counts.reads(), testing::OptimalReads(trace, frame_count, key_count))
        << "round " << round;
  }
}

TEST(BeladyScheduleTest, NoPolicyReadsLessOnAnyTrace) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t key_count = 1 + random() % 500;
    const std::uint32_t frame_count = static_cast<std::uint32_t>(random() % (key_count + 5));
    const Trace trace = RandomTrace(random, 1 + random() % 60, key_count, 1 + random() % 60);
    const std::uint64_t belady =
        FrameSimulator(frame_count)
            .Play(**MakeBeladySchedule(trace, frame_count, key_count), trace)
            .reads();
    std::vector<CacheKey> any(key_count);
    std::iota(any.begin(), any.end(), 0);
    std::shuffle(any.begin(), any.end(), random);
    const auto some = static_cast<std::uint32_t>(random() % (frame_count + std::uint64_t{1}));
    std::vector<std::unique_ptr<Policy>> others;
    others.push_back(MakeNonePolicy());
    others.push_back(MakeLruPolicy(frame_count, key_count));
    others.push_back(MakeFifoPolicy(frame_count, key_count));
    others.push_back(*MakeStaticPolicy(frame_count, key_count, *RankByUse(trace, key_count)));
    others.push_back(*MakeStaticPolicy(some, key_count, *RankByUse(trace, key_count)));
    others.push_back(*MakeStaticPolicy(frame_count, key_count, any));
    others.push_back(*MakeStaticPolicy(some, key_count, any));
    for (std::size_t i = 0; i < others.size(); ++i) {
      ASSERT_LE(belady, Replay(*others[i], trace)->reads()) << "round " << round << " policy " << i;
    }
  }
}

TEST(BeladyScheduleTest, NoPolicyReadsLessOnALongTrace) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kKeys = 20000;
  const Trace trace = RandomTrace(random, 60, kKeys, 4000);
  for (const std::uint32_t frame_count : {1u, 200u, 1000u, 4000u, 20000u}) {
    auto schedule = *MakeBeladySchedule(trace, frame_count, kKeys);
    const std::uint64_t belady = FrameSimulator(frame_count).Play(*schedule, trace).reads();
    EXPECT_LE(belady, Replay(*MakeLruPolicy(frame_count, kKeys), trace)->reads());
    EXPECT_LE(belady, Replay(*MakeFifoPolicy(frame_count, kKeys), trace)->reads());
    const std::vector<CacheKey> ranking = *RankByUse(trace, kKeys);
    EXPECT_LE(belady, Replay(**MakeStaticPolicy(frame_count, kKeys, ranking), trace)->reads());
    if (frame_count == kKeys) {
      EXPECT_EQ(belady, ranking.size());
    }
  }
}

TEST(BeladyScheduleTest, ThePoolStartsFullOfKeysThatAreUsedBeforeTheyAreEvicted) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t key_count = 1 + random() % 100;
    const std::uint32_t frame_count = static_cast<std::uint32_t>(random() % 120);
    const Trace trace = RandomTrace(random, 1 + random() % 40, key_count, 1 + random() % 20);
    auto policy = *MakeBeladySchedule(trace, frame_count, key_count);

    std::map<FrameId, CacheKey> waiting;
    for (const auto& [key, frame] : policy->Prefill()) waiting[frame] = key;
    const std::set<CacheKey> distinct(trace.keys.begin(), trace.keys.end());
    ASSERT_EQ(waiting.size(), std::min<std::size_t>(frame_count, distinct.size()));
    StepPlan plan;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      ASSERT_OK(policy->Step(trace.step(s), plan));
      for (const StepPlan::Place& hit : plan.hits) waiting.erase(hit.frame);
      for (const StepPlan::Place& insert : plan.inserts) {
        ASSERT_EQ(waiting.count(insert.frame), 0u) << "evicted before its first use";
      }
    }
    ASSERT_TRUE(waiting.empty()) << "prefilled and never used";
  }
}

TEST(BeladyScheduleTest, AKeyTwiceInAStepIsRefused) {
  EXPECT_STATUS(MakeBeladySchedule(MakeTrace({{0, 1, 0}}), 1, 3), kInvalidArgument);
  EXPECT_STATUS(MakeBeladySchedule(MakeTrace({{0}, {1, 1}}), 1, 1000), kInvalidArgument);
}

TEST(BeladyScheduleTest, OtherKeysThanItWasBuiltFromAreRefused) {
  const Trace trace = MakeTrace({{0, 1}, {1, 2}});
  auto policy = *MakeBeladySchedule(trace, 1, 3);
  StepPlan plan;
  EXPECT_STATUS(policy->Step(std::vector<CacheKey>{1, 0}, plan), kInvalidArgument);
  ASSERT_OK(policy->Step(trace.step(0), plan));
  EXPECT_STATUS(policy->Step(trace.step(0), plan), kInvalidArgument);
  ASSERT_OK(policy->Step(trace.step(1), plan));
  EXPECT_STATUS(policy->Step(trace.step(1), plan), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
