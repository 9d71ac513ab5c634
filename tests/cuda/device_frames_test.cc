#include "cuda/device_frames.h"

#include <algorithm>
#include <random>
#include <set>

#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kFramesKeys = 60;

/// Returns a trace whose steps use some keys more often than others.
Trace FramesTrace(std::mt19937_64& random, std::size_t steps) {
  Trace trace;
  for (std::size_t s = 0; s < steps; ++s) {
    std::set<CacheKey> step;
    const std::size_t count = random() % 12;
    while (step.size() < count)
      step.insert(static_cast<CacheKey>(std::min(random() % kFramesKeys, random() % kFramesKeys)));
    std::vector<CacheKey> keys(step.begin(), step.end());
    std::shuffle(keys.begin(), keys.end(), random);
    trace.AddStep(keys);
  }
  return trace;
}

/// Frames whose contents follow the plans.
struct SimulatedFrames {
  std::vector<CacheKey> held;
  std::uint64_t uploads = 0;

  void Do(const StepPlan& plan, std::span<const CacheKey> keys) {
    std::vector<int> served(keys.size());
    for (const StepPlan::Place& hit : plan.hits) {
      ++served[hit.request];
      EXPECT_EQ(held[hit.frame], keys[hit.request]);
    }
    for (const std::uint32_t miss : plan.misses) ++served[miss];
    EXPECT_EQ(served, std::vector<int>(keys.size(), 1));
    EXPECT_TRUE(std::is_sorted(plan.misses.begin(), plan.misses.end()));
    std::set<FrameId> filled;
    for (const StepPlan::Place& insert : plan.inserts) {
      EXPECT_TRUE(filled.insert(insert.frame).second) << "a frame is filled twice in a step";
      held[insert.frame] = keys[insert.request];
    }
    uploads += plan.misses.size();
  }
};

TEST(DeviceFramesTest, FramesHoldWhatPlansSayOverSuperbatches) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 150; ++round) {
    for (const PolicyKind kind :
         {PolicyKind::kBelady, PolicyKind::kStatic, PolicyKind::kMatch, PolicyKind::kNone}) {
      SCOPED_TRACE(std::string(PolicyName(kind)) + ", round " + std::to_string(round));
      const auto frame_count = static_cast<std::uint32_t>(random() % 20);
      DeviceFrames frames(kind, frame_count, kFramesKeys);
      SimulatedFrames simulated{.held = std::vector<CacheKey>(frame_count, -1)};
      std::uint64_t reads = 0;  // of policies that start again in each superbatch
      std::vector<Trace> traces;
      for (int s = 0; s < 4; ++s) traces.push_back(FramesTrace(random, random() % 8));
      ASSERT_OK(frames.Announce(traces[0]));
      for (std::size_t s = 0; s < traces.size(); ++s) {
        // The next superbatch is announced while one is in use.
        if (s + 1 < traces.size()) ASSERT_OK(frames.Announce(traces[s + 1]));
        const auto policy = MakePolicy(
            {.kind = kind, .frame_count = frame_count, .key_count = kFramesKeys}, traces[s]);
        ASSERT_OK(policy);
        const auto counts = Replay(**policy, traces[s]);
        ASSERT_OK(counts);
        reads += counts->reads();
        for (std::size_t step = 0; step < traces[s].steps(); ++step) {
          StepPlan plan;
          ASSERT_OK(frames.Step(traces[s].step(step), plan));
          simulated.Do(plan, traces[s].step(step));
        }
        // Uploads are at most those with a prefill before each superbatch.
        EXPECT_LE(simulated.uploads, reads);
      }
    }
  }
}

TEST(DeviceFramesTest, WhatStaysFromTheSuperbatchBeforeIsNotBroughtAgain) {
  DeviceFrames frames(PolicyKind::kBelady, 4, kFramesKeys);
  Trace trace;
  const CacheKey keys[] = {1, 2, 3, 4};
  trace.AddStep(keys);
  trace.AddStep(keys);
  for (int s = 0; s < 3; ++s) {
    ASSERT_OK(frames.Announce(trace));
    for (int step = 0; step < 2; ++step) {
      StepPlan plan;
      ASSERT_OK(frames.Step(keys, plan));
      EXPECT_EQ(plan.misses.size(), s == 0 && step == 0 ? 4U : 0U) << s << " " << step;
    }
  }
}

TEST(DeviceFramesTest, StepsAreThoseThatWereAnnounced) {
  DeviceFrames frames(PolicyKind::kBelady, 4, kFramesKeys);
  StepPlan plan;
  const CacheKey keys[] = {1, 2}, others[] = {1, 3};
  EXPECT_EQ(frames.Step(keys, plan).code(), StatusCode::kInvalidArgument);
  Trace trace;
  trace.AddStep(keys);
  ASSERT_OK(frames.Announce(trace));
  EXPECT_EQ(frames.Step(others, plan).code(), StatusCode::kInvalidArgument);
  ASSERT_OK(frames.Step(keys, plan));
}

}  // namespace
}  // namespace rhizome
