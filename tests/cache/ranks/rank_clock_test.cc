#include "rhizome/cache/rank_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

SuperbatchTimes Uniform(std::uint64_t steps, double prefill, double moving, double busy) {
  SuperbatchTimes times{.sampling = 0, .prefill = prefill, .minibatches = {}};
  for (std::uint64_t s = 0; s < steps; ++s)
    times.minibatches.push_back({.step = s, .moving = moving, .busy = busy});
  return times;
}

double SecondsOf(const std::vector<SuperbatchTimes>& superbatches, Overlap overlap) {
  RankClock clock(1, overlap, 0);
  for (const SuperbatchTimes& one : superbatches) clock.Add({one});
  return clock.Finish();
}

TEST(RankClockTest, WhatIsSlowerDecidesAndTheFirstFillIsNotHidden) {
  // Computing is slower: the first fill and the first minibatch's rows come before it.
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 1, 2)}, Overlap::kAll), 3 + 1 + 10 * 2);
  // Moving is slower: the last minibatch is computed on after all has come.
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 2, 1)}, Overlap::kAll), 3 + 10 * 2 + 1);
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 2, 1)}, Overlap::kNone), 3 + 10 * (2 + 1));
}

TEST(RankClockTest, ThePrefillOfTheNextSuperbatchTakesTheReadersIdleTime) {
  // The reader is idle for a second a minibatch once two are ahead; so 8 of 8 s fit.
  const double hidden = SecondsOf({Uniform(20, 0, 1, 2), Uniform(1, 8, 1, 2)}, Overlap::kAll);
  EXPECT_DOUBLE_EQ(hidden, 1 + 21 * 2);
  // The idle time is less than 100 s.
  const double shown = SecondsOf({Uniform(20, 0, 1, 2), Uniform(1, 100, 1, 2)}, Overlap::kAll);
  EXPECT_GT(shown, 100 + 21 * 1);
  EXPECT_LT(shown, 100 + 21 * 2);
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(20, 0, 1, 2), Uniform(1, 8, 1, 2)}, Overlap::kNone),
                   21 * 3 + 8);
}

TEST(RankClockTest, RanksWaitForTheSlowestAfterEachStepAndThenExchange) {
  RankClock clock(2, Overlap::kAll, 0.5);
  SuperbatchTimes first, second;
  for (std::uint64_t s = 0; s < 4; ++s) {
    first.minibatches.push_back({.step = s, .moving = 0, .busy = s % 2 == 0 ? 3.0 : 1.0});
    second.minibatches.push_back({.step = s, .moving = 0, .busy = s % 2 == 0 ? 1.0 : 3.0});
  }
  clock.Add({first, second});
  EXPECT_DOUBLE_EQ(clock.Finish(), 4 * (3 + 0.5));
}

TEST(RankClockTest, ARankWithoutAMinibatchInAStepWaitsToo) {
  RankClock clock(2, Overlap::kAll, 0);
  SuperbatchTimes some = Uniform(3, 0, 0, 1);
  some.minibatches.erase(some.minibatches.begin() + 1);
  clock.Add({some, Uniform(3, 0, 0, 2)});
  EXPECT_DOUBLE_EQ(clock.Finish(), 6);
}

/// One rank beside a plain recurrence: minibatch n is read when the reader is free and minibatch
/// n - 2 was taken, and taken when it is there and the one before is done.
TEST(RankClockTest, RandomTimesAreThoseOfTheRecurrence) {
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_real_distribution<double> seconds(0, 2);
  for (int round = 0; round < 200; ++round) {
    SuperbatchTimes times{
        .sampling = seconds(random), .prefill = seconds(random), .minibatches = {}};
    const std::size_t count = 1 + random() % 30;
    for (std::uint64_t s = 0; s < count; ++s)
      times.minibatches.push_back({.step = s, .moving = seconds(random), .busy = seconds(random)});
    std::vector<double> taken(count), read(count);
    double done = 0, sum = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const double free = n == 0 ? times.sampling + times.prefill : read[n - 1];
      read[n] = std::max(free, n < 2 ? 0.0 : taken[n - 2]) + times.minibatches[n].moving;
      taken[n] = std::max(read[n], done);
      done = taken[n] + times.minibatches[n].busy;
      sum += times.minibatches[n].moving + times.minibatches[n].busy;
    }
    RankClock clock(1, Overlap::kAll, 0);
    clock.Add({times});
    EXPECT_NEAR(clock.Finish(), done, 1e-9);
    RankClock none(1, Overlap::kNone, 0);
    none.Add({times});
    EXPECT_NEAR(none.Finish(), times.sampling + times.prefill + sum, 1e-9);
  }
}

}  // namespace
}  // namespace rhizome
