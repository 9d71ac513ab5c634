#include "cache/policy/cost_schedule.h"

#include <map>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/replay.h"
#include "cache/policy/trace_testing.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FrameSimulator;
using testing::MakeTrace;
using testing::RandomTrace;

constexpr std::uint64_t kRowBytes = 1024;

/// Returns a cost at which gaps of up to 20 rows are read through.
ReadCost TwentyRowsAGap() { return {.seconds_per_read = 61.5e-6, .bytes_per_second = 1e9}; }

/// Returns the trace with its keys so far apart that no two are read together.
Trace Spread(const Trace& trace) {
  Trace spread = trace;
  for (CacheKey& key : spread.keys) key *= 1000;
  return spread;
}

double SecondsOf(Policy& policy, const Trace& trace, const ReadCost& cost) {
  return ReplayReads(policy, trace, kRowBytes, cost)->seconds;
}

TEST(CostScheduleTest, ARowThatStandsAloneIsKeptBeforeOneAmongOthers) {
  std::vector<std::vector<CacheKey>> steps;
  for (int s = 0; s < 5; ++s) steps.push_back({500, 0, 1, 2, 3, 4, 5, 6, 7});
  const Trace trace = MakeTrace(steps);
  auto policy = *MakeCostSchedule(trace, 1, 501, kRowBytes, TwentyRowsAGap());
  FrameSimulator frames(1);
  EXPECT_EQ(frames.Play(*policy, trace).hits, 5u);
  EXPECT_EQ(frames.Resident(), (std::set<CacheKey>{500}));
}

TEST(CostScheduleTest, AnEmptyTraceAndAPoolWithoutFramesAreFine) {
  const Trace none;
  EXPECT_EQ(SecondsOf(**MakeCostSchedule(none, 2, 10, kRowBytes, ReadCost()), none, ReadCost()), 0);
  const Trace trace = MakeTrace({{}, {1}, {}, {1, 0}, {}});
  auto policy = *MakeCostSchedule(trace, 0, 2, kRowBytes, ReadCost());
  EXPECT_EQ(FrameSimulator(0).Play(*policy, trace).reads(), 3u);
}

TEST(CostScheduleTest, NeverTakesLongerThanBelady) {
  std::mt19937_64 random(testing::TestSeed());
  const ReadCost cost = TwentyRowsAGap();
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t key_count = 1 + random() % 3000;
    const auto frame_count = static_cast<std::uint32_t>(random() % (key_count / 2 + 2));
    const Trace trace = RandomTrace(random, 1 + random() % 40, key_count, 1 + random() % 100);
    const auto make = [&] {
      return *MakeCostSchedule(trace, frame_count, key_count, kRowBytes, cost);
    };
    // Every plan of the policy can be carried out.
    FrameSimulator(frame_count).Play(*make(), trace);
    auto belady = *MakeBeladySchedule(trace, frame_count, key_count);
    ASSERT_LE(SecondsOf(*make(), trace, cost), SecondsOf(*belady, trace, cost) * (1 + 1e-9))
        << "round " << round;
  }
}

TEST(CostScheduleTest, SaysWhichFramesAreDoneAndHowManyAreNeeded) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t key_count = 1 + random() % 100;
    const auto frame_count = static_cast<std::uint32_t>(random() % (key_count + 2));
    const Trace trace = RandomTrace(random, 1 + random() % 12, key_count, 1 + random() % 30);
    SCOPED_TRACE(round);
    testing::ExpectDoneFramesAreKnown(
        **MakeCostSchedule(trace, frame_count, key_count, kRowBytes, TwentyRowsAGap()), trace,
        frame_count);
    testing::ExpectDoneFramesAreKnown(**MakeBeladySchedule(trace, frame_count, key_count), trace,
                                      frame_count);
  }
}

TEST(CostScheduleTest, ReadsAsFewRowsAsBeladyWhereEveryRowStandsAlone) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t key_count = 1 + random() % 200;
    const auto frame_count = static_cast<std::uint32_t>(random() % (key_count + 5));
    const Trace trace =
        Spread(RandomTrace(random, 1 + random() % 40, key_count, 1 + random() % 30));
    auto cost =
        *MakeCostSchedule(trace, frame_count, key_count * 1000, kRowBytes, TwentyRowsAGap());
    auto belady = *MakeBeladySchedule(trace, frame_count, key_count * 1000);
    ASSERT_EQ(Replay(*cost, trace)->reads(), Replay(*belady, trace)->reads()) << "round " << round;
  }
}

TEST(CostScheduleTest, TakesLessTimeThanBeladyWhereRowsAreDense) {
  // Every step reads the first 300 rows and some of 30,000 others; the pool holds 300 rows.
  std::mt19937_64 random(testing::TestSeed());
  Trace trace;
  for (int s = 0; s < 60; ++s) {
    std::vector<CacheKey> step(300);
    std::iota(step.begin(), step.end(), 0);
    std::set<CacheKey> others;
    while (others.size() < 150) others.insert(300 + static_cast<CacheKey>(random() % 1000) * 30);
    step.insert(step.end(), others.begin(), others.end());
    trace.AddStep(step);
  }
  const ReadCost cost = TwentyRowsAGap();
  const double belady = SecondsOf(**MakeBeladySchedule(trace, 300, 40'000), trace, cost);
  const double ours =
      SecondsOf(**MakeCostSchedule(trace, 300, 40'000, kRowBytes, cost), trace, cost);
  EXPECT_LT(ours, 0.9 * belady);
}

}  // namespace
}  // namespace rhizome
