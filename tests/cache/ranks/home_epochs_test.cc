#include "cache/ranks/home_epochs.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "cache/ranks/row_homes.h"
#include "testing/test_store.h"

// Tests of HomeEpochs and HomeSeeds, which divide the vertices of each home into minibatches for
// every epoch, and of the assignment of homes to ranks.

namespace rhizome {
namespace {

using OfHomes = std::vector<std::vector<VertexId>>;

/// Returns homes with consecutive vertices, some with none.
OfHomes RandomHomes(std::size_t homes, std::mt19937_64& random, VertexId& next) {
  OfHomes of_home(homes);
  for (auto& vertices : of_home)
    for (std::uint64_t n = random() % 200; n > 0; --n) vertices.push_back(next++);
  return of_home;
}

struct RandomEpochs {
  OfHomes train, valid;
  HomeEpochsOptions options;
  explicit RandomEpochs(std::mt19937_64& random) {
    VertexId next = 0;
    train = RandomHomes(1 + random() % 6, random, next);
    train[0].push_back(next++);
    valid = RandomHomes(train.size(), random, next);
    if (random() % 4 == 0) valid.assign(train.size(), {});
    options = {.batch_size = 1 + random() % 40,
               .seed = random(),
               .epochs = static_cast<std::uint32_t>(1 + random() % 5),
               .valid_every = static_cast<std::uint32_t>(1 + random() % 3)};
  }
  HomeEpochs Make() const { return HomeEpochs(train, valid, options); }
};

/// Checks all steps of a home. Returns the sizes of the smallest and the largest of its
/// minibatches.
std::pair<std::size_t, std::size_t> CheckHome(const HomeEpochs& epochs, std::uint32_t home,
                                              bool is_valid, std::vector<VertexId> wanted,
                                              std::set<std::uint64_t>& keys) {
  std::vector<VertexId> seen;
  std::size_t least = wanted.size(), most = 0;
  const std::uint64_t steps = is_valid ? epochs.counts().valid : epochs.counts().train;
  for (std::uint64_t s = 0; s < steps; ++s) {
    const SeedBatch batch = epochs.Take(home, is_valid, s);
    EXPECT_EQ(batch.vertices.size(), epochs.SeedsOf(home, is_valid, s));
    EXPECT_EQ(batch.is_valid, is_valid);
    EXPECT_TRUE(keys.insert(batch.key).second);
    const HomeEpochs::Place place = epochs.Decode(batch.tag);
    EXPECT_EQ(place.home, home);
    EXPECT_EQ(place.step, s);
    EXPECT_EQ(place.is_valid, is_valid);
    seen.insert(seen.end(), batch.vertices.begin(), batch.vertices.end());
    least = std::min(least, batch.vertices.size());
    most = std::max(most, batch.vertices.size());
  }
  std::sort(seen.begin(), seen.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(seen, wanted);
  return {least, most};
}

TEST(HomeEpochsTest, EveryEpochHasEachVertexOnceAtItsHome) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const RandomEpochs made(random);
    HomeEpochs epochs = made.Make();
    for (const std::uint32_t epoch : {0U, 3U}) {
      epochs.Begin(epoch, 0, epochs.homes());
      std::set<std::uint64_t> keys;
      for (std::uint32_t home = 0; home < epochs.homes(); ++home) {
        for (const bool is_valid : {false, true}) {
          const auto& vertices = (is_valid ? made.valid : made.train)[home];
          const auto [least, most] = CheckHome(epochs, home, is_valid, vertices, keys);
          if (epochs.homes() > 1) {
            EXPECT_LE(most, least + 1);
          }
        }
      }
    }
  }
}

TEST(HomeEpochsTest, OneHomeHasTheMinibatchesOfATrainingOnOneMachine) {
  std::vector<VertexId> train(137), valid(41);
  std::iota(train.begin(), train.end(), 0);
  std::iota(valid.begin(), valid.end(), 1000);
  EpochPlan plan(train, valid, {.batch_size = 20, .epochs = 5, .seed = 99, .valid_every = 2});
  const HomeEpochs epochs({train}, {valid},
                          {.batch_size = 20, .seed = 99, .epochs = 5, .valid_every = 2});
  EXPECT_EQ(epochs.counts().all(), plan.minibatches());
  HomeSeeds seeds(epochs, 0, 1, 4);
  while (const auto wanted = plan.Next()) {
    const auto batch = seeds.Next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->key, wanted->key);
    EXPECT_EQ(batch->tag, wanted->tag);
    EXPECT_EQ(batch->vertices, wanted->vertices);
    EXPECT_EQ(batch->is_valid, wanted->is_valid);
  }
  EXPECT_FALSE(seeds.Next());
}

/// Every home belongs to one rank, and each rank has consecutive homes.
TEST(RowHomesTest, RanksDivideTheHomes) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 8U, 11U}) {
    for (std::uint32_t homes = ranks; homes < 40; ++homes) {
      std::uint32_t next = 0;
      for (std::uint32_t r = 0; r < ranks; ++r) {
        const HomeRange range = HomesOfRank(r, homes, ranks);
        EXPECT_EQ(range.first, next);
        EXPECT_GT(range.count, 0u);
        for (; next < range.first + range.count; ++next)
          EXPECT_EQ(RankOfHome(next, homes, ranks), r);
      }
      EXPECT_EQ(next, homes);
    }
  }
}

/// Returns the tags of all minibatches of some homes, by step.
std::vector<std::vector<std::uint64_t>> TagsBySteps(HomeSeeds seeds, std::uint64_t steps) {
  std::vector<std::vector<std::uint64_t>> tags(steps);
  while (const auto batch = seeds.Next()) tags[seeds.step()].push_back(batch->tag);
  return tags;
}

/// Any number of ranks together have the minibatches of a single rank, each in the same step.
TEST(HomeSeedsTest, StepsDoNotDependOnTheRanks) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const RandomEpochs made(random);
    const HomeEpochs epochs = made.Make();
    const std::uint64_t steps = epochs.counts().all();
    const auto wanted = TagsBySteps(HomeSeeds(epochs, 0, epochs.homes(), 3), steps);
    const auto ranks = static_cast<std::uint32_t>(1 + random() % epochs.homes());
    std::vector<std::vector<std::uint64_t>> joined(steps);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t first = r * epochs.homes() / ranks;
      const std::uint32_t end = (r + 1) * epochs.homes() / ranks;
      const auto its = TagsBySteps(HomeSeeds(epochs, first, end - first, 5), steps);
      for (std::size_t s = 0; s < steps; ++s)
        joined[s].insert(joined[s].end(), its[s].begin(), its[s].end());
    }
    EXPECT_EQ(joined, wanted);
  }
}

/// A rank that shuffles only its own homes gets the same vertices as one that shuffles all homes.
TEST(HomeSeedsTest, VerticesDoNotDependOnTheRanks) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    const RandomEpochs made(random);
    const HomeEpochs epochs = made.Make();
    const auto first = static_cast<std::uint32_t>(random() % epochs.homes());
    const auto count = static_cast<std::uint32_t>(1 + random() % (epochs.homes() - first));
    HomeSeeds all(epochs, 0, epochs.homes(), 3), own(epochs, first, count, 3);
    while (const auto wanted = all.Next()) {
      const std::uint32_t home = epochs.Decode(wanted->tag).home;
      if (home < first || home >= first + count) continue;
      const auto batch = own.Next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->tag, wanted->tag);
      EXPECT_EQ(batch->vertices, wanted->vertices);
    }
    EXPECT_FALSE(own.Next());
  }
}

TEST(HomeSeedsTest, ASuperbatchMayBeAnEpoch) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    const RandomEpochs made(random);
    const HomeEpochs epochs = made.Make();
    HomeSeeds seeds(epochs, 0, epochs.homes(), 0);
    seeds.Skip(random() % (epochs.counts().all() + 1));
    std::optional<std::uint32_t> epoch;
    while (const auto batch = seeds.Next()) {
      const std::uint32_t its = EpochPlan::Decode(batch->tag).epoch;
      EXPECT_EQ(batch->begins_superbatch, epoch != its);
      epoch = its;
    }
  }
}

TEST(HomeSeedsTest, SkippingIsAskingWithoutLooking) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const RandomEpochs made(random);
    const HomeEpochs epochs = made.Make();
    const std::uint64_t skipped = random() % (epochs.counts().all() + 1);
    const std::uint64_t superbatch = 1 + random() % 5;
    HomeSeeds asked(epochs, 0, epochs.homes(), superbatch);
    HomeSeeds skipping(epochs, 0, epochs.homes(), superbatch);
    std::optional<std::uint64_t> group;
    skipping.Skip(skipped);
    while (const auto batch = asked.Next()) {
      if (asked.step() < skipped) continue;
      const auto other = skipping.Next();
      ASSERT_TRUE(other);
      EXPECT_EQ(other->tag, batch->tag);
      EXPECT_EQ(other->vertices, batch->vertices);
      EXPECT_EQ(skipping.step(), asked.step());
      const std::uint64_t its = (asked.step() - skipped) / superbatch;
      EXPECT_EQ(other->begins_superbatch, group != its);
      group = its;
    }
    EXPECT_FALSE(skipping.Next());
  }
}

}  // namespace
}  // namespace rhizome
