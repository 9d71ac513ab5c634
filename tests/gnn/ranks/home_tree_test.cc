#include "gnn/ranks/home_tree.h"

#include <cstring>
#include <random>

#include "rhizome/transport.h"
#include "testing/test_store.h"

namespace rhizome {
namespace {

constexpr std::size_t kNumbers = 37;

/// Returns the contribution of each home to a step; some are empty.
std::vector<StepSum> RandomLeaves(std::uint32_t homes, std::mt19937_64& random) {
  std::vector<StepSum> leaves(homes);
  std::normal_distribution<float> numbers(0, 1e3F);
  for (StepSum& leaf : leaves) {
    if (random() % 5 == 0) continue;
    for (std::size_t i = 0; i < kNumbers; ++i) leaf.numbers.push_back(numbers(random));
    leaf.loss_sum = numbers(random);
    leaf.weight = std::abs(numbers(random));
    leaf.seeds = random() % 100;
    leaf.minibatches = 1;
    leaf.stops = random() % 2;
  }
  return leaves;
}

/// Returns the sum over the `width` (a power of two) places from `begin`, computed by the
/// definition of the tree.
StepSum Reference(const std::vector<StepSum>& leaves, std::size_t begin, std::size_t width) {
  if (width == 1) return leaves[begin];
  StepSum sum = Reference(leaves, begin, width / 2);
  if (begin + width / 2 < leaves.size()) sum += Reference(leaves, begin + width / 2, width / 2);
  return sum;
}

void ExpectSameBits(const StepSum& one, const StepSum& other) {
  ASSERT_EQ(one.numbers.size(), other.numbers.size());
  EXPECT_EQ(
      std::memcmp(one.numbers.data(), other.numbers.data(), one.numbers.size() * sizeof(float)), 0);
  EXPECT_EQ(one.loss_sum, other.loss_sum);
  EXPECT_EQ(one.weight, other.weight);
  EXPECT_EQ(one.seeds, other.seeds);
  EXPECT_EQ(one.minibatches, other.minibatches);
  EXPECT_EQ(one.stops, other.stops);
}

TEST(HomeTreeTest, SumsHaveTheSameBitsForAnyRanks) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::uint32_t homes : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U, 23U}) {
    std::size_t width = 1;
    while (width < homes) width *= 2;
    const std::vector<StepSum> leaves = RandomLeaves(homes, random);
    const StepSum wanted = Reference(leaves, 0, width);
    for (std::uint32_t ranks = 1; ranks <= std::min(homes, 9U); ++ranks) {
      SCOPED_TRACE(::testing::Message() << homes << " homes, " << ranks << " ranks");
      const auto transports = LocalRanks::Create(ranks);
      ASSERT_OK(transports);
      std::vector<StepSum> sums(ranks);
      ASSERT_OK((*transports)->Run([&](Transport& transport) -> Status {
        HomeTree tree(&transport, homes);
        for (int step = 0; step < 2; ++step) {  // the tree can be used again
          for (std::uint32_t h = 0; h < tree.own().count; ++h)
            tree.Add(leaves[tree.own().first + h]);
          RHIZOME_ASSIGN_OR_RETURN(sums[transport.rank()], tree.Finish(kNumbers));
        }
        return Status::Ok();
      }));
      for (const StepSum& sum : sums) ExpectSameBits(sum, wanted);
    }
  }
}

TEST(HomeTreeTest, OneRankNeedsNoTransport) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<StepSum> leaves = RandomLeaves(6, random);
  HomeTree tree(nullptr, 6);
  for (const StepSum& leaf : leaves) tree.Add(leaf);
  const Result<StepSum> sum = tree.Finish(kNumbers);
  ASSERT_OK(sum);
  ExpectSameBits(*sum, Reference(leaves, 0, 8));
}

}  // namespace
}  // namespace rhizome
