#include "cache/tables/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "cache/tables/keyed_permutation.h"
#include "cache/tables/partition_tour.h"
#include "testing/testing.h"

// Tests of the order of an epoch: permutations by key, tours of partitions, batches.

namespace rhizome {
namespace {

TEST(KeyedPermutationTest, IsAPermutationOfAnySize) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    std::set<std::uint64_t> images;
    const KeyedPermutation permutation(size, size * 7);
    for (std::uint64_t i = 0; i < size; ++i) images.insert(permutation(i));
    EXPECT_EQ(images.size(), size);
    EXPECT_EQ(*images.rbegin(), size - 1);
  }
  const std::uint64_t huge = (std::uint64_t{1} << 40) + 12345;
  const KeyedPermutation permutation(huge, 3);
  std::set<std::uint64_t> images;
  for (std::uint64_t i = 0; i < 20000; ++i) images.insert(permutation(i));
  EXPECT_EQ(images.size(), 20000U);
  EXPECT_LT(*images.rbegin(), huge);
}

/// Returns the probability that a chi-square variable is at least this far above its mean, in
/// standard deviations (Wilson and Hilferty's approximation is close to normal).
double Deviations(double chi_square, double freedom) {
  return (std::cbrt(chi_square / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

// Over many keys, each position is equally likely to go to each place, and so is each pair of
// neighbours.
TEST(KeyedPermutationTest, IsUniformOverKeysByAChiSquareTest) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::uint64_t size : {2U, 3U, 5U, 7U, 12U, 33U}) {
    const std::uint64_t keys = 20000;
    std::vector<double> places(size * size);
    std::vector<double> pairs(size * size);
    for (std::uint64_t k = 0; k < keys; ++k) {
      const KeyedPermutation permutation(size, random());
      for (std::uint64_t i = 0; i < size; ++i) ++places[i * size + permutation(i)];
      ++pairs[permutation(0) * size + permutation(1)];
    }
    double of_places = 0;
    double of_pairs = 0;
    for (std::uint64_t a = 0; a < size; ++a) {
      for (std::uint64_t b = 0; b < size; ++b) {
        const double expected = static_cast<double>(keys) / static_cast<double>(size);
        of_places += std::pow(places[a * size + b] - expected, 2) / expected;
        const double pair_expected = expected / static_cast<double>(size - 1);
        if (a != b) of_pairs += std::pow(pairs[a * size + b] - pair_expected, 2) / pair_expected;
      }
    }
    const auto n = static_cast<double>(size);
    EXPECT_LT(Deviations(of_places, (n - 1) * (n - 1)), 5) << size;
    if (size == 2) continue;  // one place decides the other
    EXPECT_LT(Deviations(of_pairs, n * (n - 1) - 1), 5) << size;
    EXPECT_GT(of_pairs, 0) << size;
  }
}

TEST(PartitionTourTest, NextIsThePartitionThatSharesTheMost) {
  //           0  1  2  3
  const std::vector<std::uint64_t> shared = {0, 1, 5, 2,  //
                                             1, 0, 4, 4,  //
                                             5, 4, 0, 9,  //
                                             2, 4, 9, 0};
  const PartitionTour tour(shared, 4);
  EXPECT_EQ(std::vector<std::uint32_t>(tour.order().begin(), tour.order().end()),
            (std::vector<std::uint32_t>{0, 2, 3, 1}));
}

TEST(PartitionTourTest, EpochsAreRotatedAndEverySecondOneRunsInReverse) {
  const PartitionTour tour(std::vector<std::uint64_t>(49), 7);
  std::set<std::uint32_t> firsts;
  for (std::uint64_t epoch = 0; epoch < 40; epoch += 2) {
    const auto forward = tour.InEpoch(1, epoch);
    auto backward = tour.InEpoch(1, epoch + 1);
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(forward, backward);
    auto rotated = forward;
    std::rotate(rotated.begin(), std::find(rotated.begin(), rotated.end(), 0U), rotated.end());
    EXPECT_TRUE(std::ranges::equal(rotated, tour.order()));
    firsts.insert(forward.front());
  }
  EXPECT_GT(firsts.size(), 3U);
  EXPECT_NE(tour.InEpoch(1, 0), tour.InEpoch(2, 0));
}

TEST(EpochOrderTest, EveryEdgeIsInOneBatchAndNoBatchSpansGroups) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t groups = 1 + static_cast<std::uint32_t>(random() % 8);
    std::vector<std::uint64_t> edges(groups);
    for (std::uint64_t& count : edges) count = random() % 3 == 0 ? 0 : random() % 50;
    std::vector<std::uint32_t> tour(groups);
    std::iota(tour.begin(), tour.end(), 0);
    std::shuffle(tour.begin(), tour.end(), random);
    const std::uint64_t batch_size = 1 + random() % 20;
    const EpochOrder order(tour, edges, batch_size, random(), random() % 5);
    std::vector<std::set<std::uint64_t>> seen(groups);
    std::vector<std::uint32_t> visited;
    std::vector<std::uint64_t> positions;
    for (std::uint64_t b = 0; b < order.batches(); ++b) {
      const EdgeBatch batch = order.At(b);
      order.Positions(batch, positions);
      ASSERT_EQ(positions.size(), batch.count);
      EXPECT_TRUE(batch.count == batch_size || batch.index + 1 == batch.group_batches);
      EXPECT_GT(batch.count, 0U);
      for (const std::uint64_t position : positions) {
        EXPECT_LT(position, edges[batch.group]);
        EXPECT_TRUE(seen[batch.group].insert(position).second);
      }
      if (visited.empty() || visited.back() != batch.group) visited.push_back(batch.group);
    }
    std::vector<std::uint32_t> expected;
    for (const std::uint32_t group : tour) {
      EXPECT_EQ(seen[group].size(), edges[group]);
      if (edges[group] > 0) expected.push_back(group);
    }
    EXPECT_EQ(visited, expected);
  }
}

TEST(EpochOrderTest, EpochsAndSeedsHaveOtherOrders) {
  const std::vector<std::uint64_t> edges = {1000};
  const auto first = [&](std::uint64_t seed, std::uint64_t epoch) {
    const EpochOrder order({0}, edges, 1000, seed, epoch);
    std::vector<std::uint64_t> positions;
    order.Positions(order.At(0), positions);
    return positions;
  };
  EXPECT_EQ(first(1, 1), first(1, 1));
  EXPECT_NE(first(1, 1), first(1, 2));
  EXPECT_NE(first(1, 1), first(2, 1));
}

}  // namespace
}  // namespace rhizome
