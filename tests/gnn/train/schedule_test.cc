#include "gnn/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cache/feed/epoch_plan.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using History = std::vector<std::optional<double>>;

double RateAt(const ScheduleOptions& schedule, std::size_t epoch, std::uint32_t epochs) {
  return LearningRate(schedule, 1, epochs, History(epoch), {});
}

TEST(ScheduleTest, RatesFollowTheirFormulas) {
  constexpr std::uint32_t kEpochs = 12;
  for (std::size_t e = 0; e < kEpochs; ++e) {
    const auto t = static_cast<double>(e);
    EXPECT_EQ(RateAt({}, e, kEpochs), 1);
    EXPECT_DOUBLE_EQ(RateAt({.kind = ScheduleKind::kLinear}, e, kEpochs), 1 - t / 12);
    EXPECT_DOUBLE_EQ(RateAt({.kind = ScheduleKind::kCosine}, e, kEpochs),
                     (1 + std::cos(std::acos(-1.0) * t / 12)) / 2);
    EXPECT_DOUBLE_EQ(RateAt({.kind = ScheduleKind::kStep, .every = 5, .factor = 0.5}, e, kEpochs),
                     e < 5    ? 1
                     : e < 10 ? 0.5
                              : 0.25);
    EXPECT_DOUBLE_EQ(RateAt({.kind = ScheduleKind::kStep}, e, kEpochs),
                     std::pow(0.1, std::floor(t / 4)));
  }
}

TEST(ScheduleTest, WarmupRisesAndThenTheScheduleBegins) {
  const ScheduleOptions linear{.kind = ScheduleKind::kLinear, .warmup = 3};
  for (const auto& [epoch, rate] : std::vector<std::pair<std::size_t, double>>{
           {0, 0.25}, {1, 0.5}, {2, 0.75}, {3, 1}, {5, 0.8}, {12, 0.1}})
    EXPECT_DOUBLE_EQ(RateAt(linear, epoch, 13), rate) << epoch;
  EXPECT_DOUBLE_EQ(RateAt({.warmup = 9}, 8, 4), 0.9);  // longer than the training
}

TEST(ScheduleTest, APlateauLowersTheRateEachTimeThatItLasts) {
  const ScheduleOptions plateau{.kind = ScheduleKind::kPlateau, .every = 2, .factor = 0.5};
  const History history = {0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7, 0.1, 0.1};
  const std::vector<double> rates = {1, 1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125};
  for (std::size_t e = 0; e < rates.size(); ++e) {
    EXPECT_DOUBLE_EQ(LearningRate(plateau, 1, 20, MetricHistory(history).first(e), {}), rates[e])
        << e;
  }
}

TEST(ScheduleTest, StopsAfterExactlySoManyEpochsWithoutABetterOne) {
  const History history = {0.5, 0.7, 0.7, 0.6, 0.65};
  for (std::size_t n = 0; n <= history.size(); ++n) {
    EXPECT_EQ(StopsEarly(3, MetricHistory(history).first(n), {}), n >= 5) << n;
    EXPECT_EQ(StopsEarly(1, MetricHistory(history).first(n), {}), n >= 3) << n;
    EXPECT_FALSE(StopsEarly(4, MetricHistory(history).first(n), {}));
    EXPECT_FALSE(StopsEarly(0, MetricHistory(history).first(n), {}));
  }
}

/// Returns the same as StopsEarly, by checking every epoch at which training could have stopped.
bool StopsByBruteForce(std::size_t patience, const History& history, const Improvement& better) {
  for (std::size_t end = 0; end < history.size(); ++end) {
    if (!history[end]) continue;
    std::size_t last = end;  // the last epoch that was better than all before it
    bool found = false;
    std::optional<double> best;
    for (std::size_t e = 0; e <= end; ++e) {
      if (!history[e] || (best && !better.Is(*history[e], *best))) continue;
      best = history[e];
      last = e;
      found = true;
    }
    if (found && end - last >= patience) return true;
  }
  return false;
}

TEST(ScheduleTest, StoppingLooksAtMeasuredEpochsAlone) {
  std::mt19937_64 random(testing::TestSeed());
  int stopped = 0;
  for (int i = 0; i < 2000; ++i) {
    History history(random() % 12);
    for (std::optional<double>& value : history)
      if (random() % 3 > 0) value = static_cast<double>(random() % 5) / 4;
    const Improvement better{.larger = random() % 2 == 0,
                             .min_delta = random() % 2 == 0 ? 0 : 0.25};
    const auto patience = static_cast<std::uint32_t>(1 + random() % 4);
    const bool stops = StopsEarly(patience, history, better);
    EXPECT_EQ(stops, StopsByBruteForce(patience, history, better));
    stopped += stops ? 1 : 0;
  }
  EXPECT_GT(stopped, 100);
  EXPECT_LT(stopped, 1900);
}

TEST(EpochPlanTest, TheValidationSetFollowsEverySoManyEpochsAndTheLast) {
  std::vector<VertexId> train(10), valid(5);
  for (std::size_t i = 0; i < 15; ++i)
    (i < 10 ? train[i] : valid[i - 10]) = static_cast<VertexId>(i);
  for (const std::uint32_t every : {1, 2, 3, 7, 20}) {
    const EpochPlan plan(train, valid,
                         {.batch_size = 4, .epochs = 7, .seed = 2, .valid_every = every});
    EpochPlan asked = plan;
    std::uint64_t minibatches = 0;
    std::vector<std::uint64_t> valid_of(7, 0);
    while (const std::optional<SeedBatch> batch = asked.Next()) {
      const EpochPlan::Tag tag = EpochPlan::Decode(batch->tag);
      EXPECT_EQ(minibatches == plan.Before(tag.epoch), !tag.is_valid && tag.batch == 0);
      valid_of[tag.epoch] += tag.is_valid ? 1 : 0;
      ++minibatches;
      EpochPlan skipping = plan;
      skipping.Skip(minibatches);
      EpochPlan next = asked;
      const auto a = next.Next(), b = skipping.Next();
      ASSERT_EQ(a.has_value(), b.has_value());
      EXPECT_EQ(a ? a->tag : 0, b ? b->tag : 0);
    }
    EXPECT_EQ(minibatches, plan.minibatches());
    for (std::uint32_t e = 0; e < 7; ++e) {
      EXPECT_EQ(plan.counts().HasValid(e), (e + 1) % every == 0 || e == 6);
      EXPECT_EQ(valid_of[e], plan.counts().HasValid(e) ? 2u : 0u);
    }
  }
}

}  // namespace
}  // namespace rhizome
