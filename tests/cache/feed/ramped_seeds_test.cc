#include "cache/feed/ramped_seeds.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace rhizome {
namespace {

std::vector<VertexId> Seeds(std::size_t count) {
  std::vector<VertexId> seeds(count);
  std::iota(seeds.begin(), seeds.end(), 0);
  return seeds;
}

/// The lengths of the superbatches, as a pipeline with superbatches of up to `most` divides them.
std::vector<std::uint64_t> Lengths(EpochPlan plan, std::uint32_t ramp, bool each_epoch,
                                   std::uint64_t most, EpochPlan same) {
  RampedSeeds seeds(std::move(plan), ramp, each_epoch);
  std::vector<std::uint64_t> lengths;
  while (const auto next = seeds()) {
    const auto expected = same.Next();
    EXPECT_EQ(next->tag, expected->tag);
    EXPECT_EQ(next->key, expected->key);
    EXPECT_EQ(next->vertices, expected->vertices);
    if (next->begins_superbatch || lengths.back() == most) lengths.push_back(0);
    ++lengths.back();
  }
  EXPECT_FALSE(same.Next().has_value());
  return lengths;
}

std::vector<std::uint64_t> Lengths(std::uint32_t minibatches, std::uint32_t epochs,
                                   std::uint32_t ramp, bool each_epoch, std::uint64_t most,
                                   std::uint64_t skipped = 0) {
  EpochPlan plan(Seeds(10 * minibatches), {}, {.batch_size = 10, .epochs = epochs, .seed = 3});
  plan.Skip(skipped);
  EpochPlan same = plan;
  return Lengths(std::move(plan), ramp, each_epoch, most, std::move(same));
}

using Of = std::vector<std::uint64_t>;

TEST(RampedSeedsTest, SuperbatchesGrowUpToTheirLength) {
  EXPECT_EQ(Lengths(40, 1, 8, false, 8), (Of{1, 2, 4, 8, 8, 8, 8, 1}));
  EXPECT_EQ(Lengths(40, 1, 12, false, 12), (Of{1, 2, 4, 8, 12, 12, 1}));
  EXPECT_EQ(Lengths(5, 1, 1, false, 1), (Of{1, 1, 1, 1, 1}));
  EXPECT_EQ(Lengths(20, 2, 8, false, 8), (Of{1, 2, 4, 8, 8, 8, 8, 1})) << "over epochs";
}

TEST(RampedSeedsTest, EpochsThatMayNotFollowBeginAnew) {
  EXPECT_EQ(Lengths(20, 2, 8, true, 8), (Of{1, 2, 4, 8, 5, 1, 2, 4, 8, 5}));
  EXPECT_EQ(Lengths(20, 2, 8, true, 8, 17), (Of{1, 2, 1, 2, 4, 8, 5})) << "after skipping";
  EXPECT_EQ(Lengths(3, 3, 128, true, 128), (Of{1, 2, 1, 2, 1, 2}));
}

TEST(RampedSeedsTest, WithoutARampTheLengthIsThatOfTheCaller) {
  EXPECT_EQ(Lengths(20, 2, 0, false, 16), (Of{16, 16, 8}));
  EXPECT_EQ(Lengths(20, 2, 0, true, 16), (Of{16, 4, 16, 4}));
}

}  // namespace
}  // namespace rhizome
