#include "cache/ranks/rank_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

SuperbatchTimes Uniform(std::uint64_t steps, double prefill, double moving, double busy) {
  SuperbatchTimes times;
  times.prefill = prefill;
  for (std::uint64_t s = 0; s < steps; ++s)
    times.minibatches.push_back({.step = s, .moving = moving, .compute = busy});
  return times;
}

double SecondsOf(const std::vector<SuperbatchTimes>& superbatches, Overlap overlap,
                 double processors = 0) {
  RankClock clock(1, overlap, processors);
  for (const SuperbatchTimes& one : superbatches) clock.Add({one});
  return clock.Finish();
}

TEST(RankClockTest, WhatIsSlowerDecidesAndTheFirstFillIsNotHidden) {
  // Computing is slower: it starts after the first fill and the rows of the first minibatch.
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 1, 2)}, Overlap::kAll), 3 + 1 + 10 * 2);
  // Moving is slower: the last minibatch is computed after all rows have arrived.
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 2, 1)}, Overlap::kAll), 3 + 10 * 2 + 1);
  EXPECT_DOUBLE_EQ(SecondsOf({Uniform(10, 3, 2, 1)}, Overlap::kNone), 3 + 10 * (2 + 1));
}

TEST(RankClockTest, ThePrefillOfTheNextSuperbatchTakesTheReadersIdleTime) {
  // Once two minibatches are ahead, the reader is idle for a second in each minibatch, so a prefill
  // of 8 s is hidden.
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
  RankClock clock(2, Overlap::kAll, 0);
  SuperbatchTimes first, second;
  for (std::uint64_t s = 0; s < 4; ++s) {
    const bool even = s % 2 == 0, learns = s != 3;
    first.minibatches.push_back({.step = s, .compute = even ? 3.0 : 1.0});
    second.minibatches.push_back(
        {.step = s, .compute = even ? 1.0 : 3.0, .exchange = learns ? 0.5 : 0.25});
  }
  clock.Add({first, second});
  EXPECT_DOUBLE_EQ(clock.Finish(), 4 * 3 + 3 * 0.5 + 0.25);
}

TEST(RankClockTest, ARankWithoutAMinibatchInAStepWaitsToo) {
  RankClock clock(2, Overlap::kAll, 0);
  SuperbatchTimes some = Uniform(3, 0, 0, 1);
  some.minibatches.erase(some.minibatches.begin() + 1);
  clock.Add({some, Uniform(3, 0, 0, 2)});
  EXPECT_DOUBLE_EQ(clock.Finish(), 6);
}

TEST(RankClockTest, WhatIsDoneBesideComputingTakesOfTheProcessors) {
  SuperbatchTimes first = Uniform(10, 3, 1, 2), second = Uniform(10, 0, 1, 2);
  first.preparing = 4;
  for (MinibatchTimes& one : first.minibatches) one.work = 1;
  second.preparing = 5;
  second.prefill_work = 15;
  // The first superbatch is prepared and filled before it is computed. During each of its
  // minibatches, the CPU also spends a second on rows and two on the next superbatch, after which
  // there is none. Threads that share a CPU take 1.52 times as long.
  EXPECT_DOUBLE_EQ(SecondsOf({first, second}, Overlap::kAll, 1),
                   4 + 3 + 1 + 10 * 1.52 * (2 + 1 + 2) + 10 * 2);
  EXPECT_DOUBLE_EQ(SecondsOf({first, second}, Overlap::kAll, 2.5), 4 + 3 + 1 + 20 * 2);
  EXPECT_DOUBLE_EQ(SecondsOf({first, second}, Overlap::kAll, 0), 4 + 3 + 1 + 20 * 2);
  // Rows arrive while nothing is computed; the next superbatch is prepared throughout.
  EXPECT_DOUBLE_EQ(SecondsOf({first, second}, Overlap::kNone, 1),
                   4 + 3 + 10 * (1 + 1.52 * (2 + 0.5)) + 10 * (1 + 2));
}

TEST(RankClockTest, ASuperbatchThatIsLongPreparedIsWaitedFor) {
  SuperbatchTimes first = Uniform(10, 0, 0, 1), second = Uniform(10, 0, 0, 1);
  first.preparing = 2;
  second.preparing = 50;
  EXPECT_DOUBLE_EQ(SecondsOf({first, second}, Overlap::kAll, 100), 2 + 50 + 10);
}

/// Compares one rank with a plain recurrence: the reader reads minibatch n when it is free and
/// minibatch n - 2 has been taken; minibatch n is taken when it has been read and the minibatch
/// before it is computed.
TEST(RankClockTest, RandomTimesAreThoseOfTheRecurrence) {
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_real_distribution<double> seconds(0, 2);
  for (int round = 0; round < 200; ++round) {
    SuperbatchTimes times;
    times.preparing = seconds(random);
    times.prefill = seconds(random);
    const std::size_t count = 1 + random() % 30;
    for (std::uint64_t s = 0; s < count; ++s)
      times.minibatches.push_back(
          {.step = s, .moving = seconds(random), .compute = seconds(random)});
    std::vector<double> taken(count), read(count);
    double done = 0, sum = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const double free = n == 0 ? times.preparing + times.prefill : read[n - 1];
      read[n] = std::max(free, n < 2 ? 0.0 : taken[n - 2]) + times.minibatches[n].moving;
      taken[n] = std::max(read[n], done);
      done = taken[n] + times.minibatches[n].compute;
      sum += times.minibatches[n].moving + times.minibatches[n].compute;
    }
    RankClock clock(1, Overlap::kAll, 0);
    clock.Add({times});
    EXPECT_NEAR(clock.Finish(), done, 1e-9);
    RankClock none(1, Overlap::kNone, 0);
    none.Add({times});
    EXPECT_NEAR(none.Finish(), times.preparing + times.prefill + sum, 1e-9);
  }
}

}  // namespace
}  // namespace rhizome
