#include "index/sample/draws.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "index/chi_square.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Counts = std::vector<std::uint64_t>;

double Choose(std::uint64_t n, std::uint64_t k) {
  double product = 1;
  for (std::uint64_t i = 0; i < k; ++i) {
    product *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return product;
}

// Compares observed outcomes with exact probabilities by a chi-square test. Outcomes of probability
// 0 must not occur.
void ExpectDistribution(const std::map<Counts, std::uint64_t>& observed,
                        const std::map<Counts, double>& probability, std::uint64_t trials) {
  double statistic = 0;
  std::size_t possible = 0;
  for (const auto& [outcome, p] : probability) {
    const auto found = observed.find(outcome);
    const double count = found == observed.end() ? 0 : static_cast<double>(found->second);
    if (p == 0) {
      EXPECT_EQ(count, 0);
      continue;
    }
    const double expected = p * static_cast<double>(trials);
    statistic += (count - expected) * (count - expected) / expected;
    ++possible;
  }
  EXPECT_LT(statistic, testing::ChiSquareBound(possible - 1));
}

RandomKey Trial(std::uint64_t seed, std::uint64_t trial) {
  return {.seed = seed, .batch = 0, .vertex = trial, .hop = 0, .stream = 0};
}

// The expected values are the first block for counter 0 and key 0, as published with the generator.
TEST(CounterRandomTest, IsPhilox4x64With10Rounds) {
  CounterRandom random(RandomKey{});
  EXPECT_EQ(random.Next64(), 0x16554d9eca36314cU);
  EXPECT_EQ(random.Next64(), 0xdb20fe9d672d0fdcU);
  EXPECT_EQ(random.Next64(), 0xd7e772cee186176bU);
  EXPECT_EQ(random.Next64(), 0x7e68b68aec7ba23bU);
}

TEST(CounterRandomTest, EveryPartOfTheKeyMatters) {
  std::set<std::uint64_t> first;
  for (const RandomKey& key :
       {RandomKey{}, RandomKey{.seed = 1}, RandomKey{.batch = 1}, RandomKey{.vertex = 1},
        RandomKey{.hop = 1}, RandomKey{.stream = 1}}) {
    CounterRandom random(key);
    CounterRandom again(key);
    const std::uint64_t number = random.Next64();
    EXPECT_EQ(again.Next64(), number);
    first.insert(number);
  }
  EXPECT_EQ(first.size(), 6);
}

TEST(CounterRandomTest, BoundedNumbersAreUniform) {
  const std::uint64_t seed = testing::TestSeed();
  // The bounds are around 2^32 and far above it, where a simple reduction would be most biased.
  for (const std::uint64_t bound :
       {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{3} << 30, (std::uint64_t{1} << 32) - 1,
        std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1, std::uint64_t{3} << 62}) {
    CounterRandom random({.seed = seed, .vertex = bound});
    constexpr std::uint64_t kTrials = 30000;
    std::vector<double> count(7);
    for (std::uint64_t i = 0; i < kTrials; ++i) {
      const std::uint64_t number = random.Below(bound);
      ASSERT_LT(number, bound);
      const double share = static_cast<double>(number) / static_cast<double>(bound);
      count[std::min<std::size_t>(6, static_cast<std::size_t>(share * 7))] += 1;
    }
    if (bound == 1) continue;
    double statistic = 0;
    for (const double c : count)
      statistic += (c - kTrials / 7.0) * (c - kTrials / 7.0) * 7 / kTrials;
    EXPECT_LT(statistic, testing::ChiSquareBound(6)) << bound;
  }
}

TEST(PositionDrawerTest, SmallSetsAreEquallyLikely) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::uint64_t kTrials = 60000;
  for (const std::uint64_t draws : {1u, 2u, 3u, 5u}) {
    PositionDrawer drawer;
    std::map<Counts, std::uint64_t> observed;
    Counts positions;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      CounterRandom random(Trial(seed, trial));
      drawer.WithoutReplacement(random, 6, draws, positions);
      std::sort(positions.begin(), positions.end());
      ++observed[positions];
    }
    const double sets = Choose(6, draws);
    EXPECT_EQ(observed.size(), static_cast<std::size_t>(sets + 0.5));
    std::map<Counts, double> probability;
    for (const auto& [set, count] : observed) {
      EXPECT_EQ(std::set<std::uint64_t>(set.begin(), set.end()).size(), draws);
      EXPECT_LT(set.back(), 6);
      probability[set] = 1 / sets;
    }
    ExpectDistribution(observed, probability, kTrials);
  }
}

// The sizes cover each method of drawing: comparisons, a walk over all positions, a hash set.
TEST(PositionDrawerTest, EveryPositionIsIncludedEquallyOften) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::uint64_t kTrials = 4000;
  for (const auto& [size, draws] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {200, 20}, {33, 32}, {100, 40}, {60, 59}, {400, 40}, {1000, 200}}) {
    PositionDrawer drawer;
    std::vector<double> count(size);
    Counts positions;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      CounterRandom random(Trial(seed, trial));
      drawer.WithoutReplacement(random, size, draws, positions);
      ASSERT_EQ(std::set<std::uint64_t>(positions.begin(), positions.end()).size(), draws);
      for (const std::uint64_t position : positions) {
        ASSERT_LT(position, size);
        count[position] += 1;
      }
    }
    // The counts of a sample without replacement vary less than multinomial ones, and have a fixed
    // sum.
    const double share = static_cast<double>(draws) / static_cast<double>(size);
    const double variance =
        kTrials * share * (1 - share) * static_cast<double>(size) / static_cast<double>(size - 1);
    double statistic = 0;
    for (const double c : count)
      statistic += (c - kTrials * share) * (c - kTrials * share) / variance;
    EXPECT_LT(statistic, testing::ChiSquareBound(size - 1)) << draws << " of " << size;
  }
}

TEST(PositionDrawerTest, AllOfThemIsAll) {
  PositionDrawer drawer;
  for (const std::uint64_t size : {1u, 32u, 33u, 500u}) {
    CounterRandom random(RandomKey{});
    Counts positions;
    drawer.WithoutReplacement(random, size, size, positions);
    std::sort(positions.begin(), positions.end());
    Counts all(size);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    EXPECT_EQ(positions, all);
  }
}

}  // namespace
}  // namespace rhizome
