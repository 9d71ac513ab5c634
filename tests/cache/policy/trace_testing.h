#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

namespace rhizome::testing {

inline Trace MakeTrace(const std::vector<std::vector<CacheKey>>& steps) {
  Trace trace;
  for (const std::vector<CacheKey>& step : steps) trace.AddStep(step);
  return trace;
}

/// Returns steps of 1 to `max_step` distinct keys; small keys are used more often, like hubs.
inline Trace RandomTrace(std::mt19937_64& random, std::size_t steps, std::uint64_t key_count,
                         std::uint64_t max_step) {
  Trace trace;
  for (std::size_t s = 0; s < steps; ++s) {
    const std::uint64_t wanted = 1 + random() % std::min(max_step, key_count);
    std::vector<CacheKey> step;
    std::set<CacheKey> seen;
    while (step.size() < wanted) {
      const std::uint64_t bound = 1 + random() % key_count;
      const CacheKey key = static_cast<CacheKey>(random() % bound);
      if (seen.insert(key).second) step.push_back(key);
    }
    trace.AddStep(step);
  }
  return trace;
}

/// Expects that StepPlan::done and frames_needed are right, by checking the later plans of the
/// policy.
inline void ExpectDoneFramesAreKnown(Policy& policy, const Trace& trace,
                                     std::uint32_t frame_count) {
  std::vector<StepPlan> plans(trace.steps());
  std::vector<std::uint32_t> needed = {policy.frames_needed()};
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    ASSERT_OK(policy.Step(trace.step(s), plans[s]));
    needed.push_back(policy.frames_needed());
  }
  const auto is_hit_later = [&](FrameId frame, std::size_t s) {
    for (++s; s < plans.size(); ++s) {
      for (const StepPlan::Place& hit : plans[s].hits)
        if (hit.frame == frame) return true;
      for (const StepPlan::Place& insert : plans[s].inserts)
        if (insert.frame == frame) return false;
    }
    return false;
  };
  std::uint32_t most = 0;
  for (std::size_t s = plans.size(); s > 0; --s) {
    SCOPED_TRACE(s - 1);
    EXPECT_EQ(needed[s], most);
    std::set<FrameId> touched;  // in this step
    for (const StepPlan::Place& hit : plans[s - 1].hits) touched.insert(hit.frame);
    for (const StepPlan::Place& insert : plans[s - 1].inserts) touched.insert(insert.frame);
    // In the first step, `done` also lists prefilled frames that no step of the trace uses.
    if (s == 1)
      for (const auto& [key, frame] : policy.Prefill()) touched.insert(frame);
    std::set<FrameId> done;
    for (const FrameId frame : touched)
      if (!is_hit_later(frame, s - 1)) done.insert(frame);
    EXPECT_EQ(std::set<FrameId>(plans[s - 1].done.begin(), plans[s - 1].done.end()), done);
    EXPECT_EQ(plans[s - 1].done.size(), done.size());
    std::uint32_t count = 0;
    for (FrameId frame = 0; frame < frame_count; ++frame) {
      const bool hit = std::any_of(plans[s - 1].hits.begin(), plans[s - 1].hits.end(),
                                   [&](const StepPlan::Place& one) { return one.frame == frame; });
      const bool filled =
          std::any_of(plans[s - 1].inserts.begin(), plans[s - 1].inserts.end(),
                      [&](const StepPlan::Place& one) { return one.frame == frame; });
      if (hit || (!filled && is_hit_later(frame, s - 1))) ++count;
    }
    most = std::max(most, count);
  }
  EXPECT_EQ(needed[0], most);
}

/// Plays a trace with real frames that hold keys, and fails the test if a plan is impossible. Each
/// request must be a hit or a miss, each hit must find its key in its frame, each insert must be a
/// key of the step that was read or is in memory, and no key may be in two frames.
class FrameSimulator {
 public:
  explicit FrameSimulator(std::uint32_t frame_count) : frames_(frame_count, kEmpty) {}

  ReplayCounts Play(Policy& policy, const Trace& trace) {
    ReplayCounts counts;
    for (const auto& [key, frame] : policy.Prefill()) {
      Put(key, frame);
      ++counts.prefill;
    }
    EXPECT_EQ(Resident().size(), counts.prefill) << "two prefills into one frame";
    StepPlan plan;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      SCOPED_TRACE(s);
      EXPECT_OK(policy.Step(trace.step(s), plan));
      Apply(trace.step(s), plan);
      counts.requests += trace.step(s).size();
      counts.hits += plan.hits.size();
      counts.misses += plan.misses.size();
    }
    return counts;
  }

  /// Returns the keys that are in frames now.
  const std::set<CacheKey>& Resident() const { return resident_; }

 private:
  static constexpr CacheKey kEmpty = -1;

  void Empty(FrameId frame) {
    ASSERT_LT(frame, frames_.size());
    resident_.erase(frames_[frame]);
    frames_[frame] = kEmpty;
  }

  void Put(CacheKey key, FrameId frame) {
    Empty(frame);
    ASSERT_TRUE(resident_.insert(key).second) << "key " << key << " is in two frames";
    frames_[frame] = key;
  }

  void Apply(std::span<const CacheKey> keys, const StepPlan& plan) {
    std::vector<int> answers(keys.size(), 0);
    for (const StepPlan::Place& hit : plan.hits) {
      ASSERT_LT(hit.request, keys.size());
      ASSERT_LT(hit.frame, frames_.size());
      EXPECT_EQ(frames_[hit.frame], keys[hit.request]) << "a hit that is not resident";
      ++answers[hit.request];
    }
    for (const std::uint32_t miss : plan.misses) {
      ASSERT_LT(miss, keys.size());
      EXPECT_EQ(resident_.count(keys[miss]), 0u) << "a miss that is resident";
      ++answers[miss];
    }
    EXPECT_EQ(std::count(answers.begin(), answers.end(), 1),
              static_cast<std::ptrdiff_t>(keys.size()));
    std::set<FrameId> filled;
    for (const StepPlan::Place& insert : plan.inserts) {
      ASSERT_LT(insert.request, keys.size());
      EXPECT_TRUE(filled.insert(insert.frame).second) << "a frame filled twice in one step";
      Empty(insert.frame);
    }
    for (const StepPlan::Place& insert : plan.inserts) Put(keys[insert.request], insert.frame);
  }

  std::vector<CacheKey> frames_;
  std::set<CacheKey> resident_;
};

/// Returns the minimum number of reads of any policy for a trace, if the pool initially holds the
/// set `held`. Tries every set before the first step (keys outside `held` count as reads), and
/// after each step every subset of the keys in memory.
inline std::uint64_t OptimalReads(const Trace& trace, std::uint32_t frame_count,
                                  std::uint32_t key_count, std::uint32_t held = 0) {
  constexpr std::uint64_t kImpossible = std::numeric_limits<std::uint32_t>::max();
  const std::uint32_t sets = 1U << key_count;
  const auto fits = [&](std::uint32_t set) {
    return static_cast<std::uint32_t>(std::popcount(set)) <= frame_count;
  };
  std::vector<std::uint64_t> cost(sets, kImpossible);
  for (std::uint32_t set = 0; set < sets; ++set)
    if (fits(set)) cost[set] = static_cast<std::uint64_t>(std::popcount(set & ~held));
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    std::uint32_t wanted = 0;
    for (const CacheKey key : trace.step(s)) wanted |= 1U << key;
    std::vector<std::uint64_t> after(sets, kImpossible);
    for (std::uint32_t set = 0; set < sets; ++set) {
      if (cost[set] == kImpossible) continue;
      const std::uint64_t reads =
          cost[set] + static_cast<std::uint64_t>(std::popcount(wanted & ~set));
      const std::uint32_t at_hand = set | wanted;
      for (std::uint32_t keep = at_hand;; keep = (keep - 1) & at_hand) {
        if (fits(keep)) after[keep] = std::min(after[keep], reads);
        if (keep == 0) break;
      }
    }
    cost = std::move(after);
  }
  return *std::min_element(cost.begin(), cost.end());
}

}  // namespace rhizome::testing
