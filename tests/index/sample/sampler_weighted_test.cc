#include <cmath>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/sample/sampler_weights.h"
#include "index/sampler_graphs.h"
#include "rhizome/sampler.h"

namespace rhizome {
namespace {

using testing::AllVertices;
using testing::Build;
using testing::DrawnFor;
using testing::ExpectLaw;
using testing::Fanouts;
using testing::MakeSampler;
using testing::RandomInput;
using testing::RandomPartitions;
using testing::StarInput;

constexpr std::uint64_t kSamplerWeightedTrials = 12000;

GraphInput WeightedStar(const std::vector<float>& weights) {
  GraphInput input = StarInput(weights.size());
  input.edges.weight = weights;
  return input;
}

// The number of draws of each class, where the class of an entry is its weight. The distribution of
// successive draws in proportion to the remaining weights is computed by enumeration.
using ClassCounts = std::map<float, int>;
void EnumerateWithoutReplacement(ClassCounts left, int draws, double p, const ClassCounts& drawn,
                                 std::map<ClassCounts, double>& law) {
  double sum = 0;
  for (const auto& [weight, count] : left) sum += static_cast<double>(weight) * count;
  if (draws == 0 || sum <= 0) {
    law[drawn] += p;
    return;
  }
  for (const auto& [weight, count] : left) {
    if (count == 0 || weight == 0) continue;
    ClassCounts next_left = left;
    ClassCounts next_drawn = drawn;
    --next_left[weight];
    ++next_drawn[weight];
    EnumerateWithoutReplacement(next_left, draws - 1, p * static_cast<double>(weight) * count / sum,
                                next_drawn, law);
  }
}

// The same with replacement: the multinomial distribution.
void EnumerateWithReplacement(const ClassCounts& all, double sum, int draws, double p,
                              const ClassCounts& drawn, std::map<ClassCounts, double>& law) {
  if (draws == 0) {
    law[drawn] += p;
    return;
  }
  for (const auto& [weight, count] : all) {
    if (weight == 0) continue;
    ClassCounts next = drawn;
    ++next[weight];
    EnumerateWithReplacement(all, sum, draws - 1, p * static_cast<double>(weight) * count / sum,
                             next, law);
  }
}

void ExpectClassLaw(const GraphSnapshot& graph, const std::vector<float>& weights, int fanout,
                    bool replace, std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << graph.partition_count() << " partitions, fanout " << fanout
                                    << (replace ? ", with replacement" : ""));
  SamplerOptions options = Fanouts({fanout});
  options.weighted = true;
  options.replace = replace;
  options.seed = seed;
  const auto sampler = MakeSampler(graph, options);
  ASSERT_NE(sampler, nullptr);
  std::map<ClassCounts, double> observed;
  for (std::uint64_t batch = 0; batch < kSamplerWeightedTrials; ++batch) {
    const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
    ASSERT_OK(sample);
    ClassCounts drawn;
    std::set<VertexId> distinct;
    for (const Neighbor& n : DrawnFor(graph, *sample, 0)) {
      ASSERT_EQ(n.weight, weights[static_cast<std::size_t>(n.vertex) - 1]);
      ++drawn[n.weight];
      distinct.insert(n.vertex);
    }
    ASSERT_TRUE(replace || distinct.size() == sample->neighbors.size());
    observed[drawn] += 1;
  }
  ClassCounts all;
  double sum = 0;
  for (const float weight : weights) {
    ++all[weight];
    sum += static_cast<double>(weight);
  }
  std::map<ClassCounts, double> law;
  if (replace) {
    EnumerateWithReplacement(all, sum, fanout, 1, {}, law);
  } else {
    EnumerateWithoutReplacement(all, fanout, 1, {}, law);
  }
  ExpectLaw(observed, law, static_cast<double>(kSamplerWeightedTrials));
}

// All weights differ, so outcomes are sets. Short lists are drawn by keys.
TEST(WeightedSamplerTest, ShortListsFollowTheLawOfAES) {
  const std::uint64_t seed = testing::TestSeed();
  const std::vector<float> weights = {0.5F, 1, 0, 2, 3.25F, 6};
  for (const std::uint32_t partitions : {1U, 2U, 4U}) {
    const auto open = Build(WeightedStar(weights), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    for (const int fanout : {1, 2, 4}) ExpectClassLaw(*open->graph, weights, fanout, false, seed);
    ExpectClassLaw(*open->graph, weights, 2, true, seed);
  }
}

// Long lists are drawn through the table of sums.
TEST(WeightedSamplerTest, LongListsFollowTheLawOfAES) {
  const std::uint64_t seed = testing::TestSeed();
  std::vector<float> weights;
  for (int i = 0; i < 150; ++i) {
    weights.push_back(i % 5 == 0 ? 0.0F : i % 7 == 1 ? 8.0F : i % 3 == 0 ? 2.0F : 0.5F);
  }
  for (const std::uint32_t partitions : {1U, 3U}) {
    const auto open = Build(WeightedStar(weights), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    for (const int fanout : {1, 4}) {
      ExpectClassLaw(*open->graph, weights, fanout, false, seed);
      ExpectClassLaw(*open->graph, weights, fanout, true, seed);
    }
  }
}

// One entry has nearly all the weight, so draws through the sums repeat until the sampler switches
// to drawing by keys.
TEST(WeightedSamplerTest, OneHeavyEntryDoesNotHideTheOthers) {
  const std::uint64_t seed = testing::TestSeed();
  std::vector<float> weights(100, 1.0F);
  for (std::size_t i = 0; i < weights.size(); i += 4) weights[i] = 3.0F;
  weights[61] = 1e6F;
  for (const std::uint32_t partitions : {1U, 3U}) {
    const auto open = Build(WeightedStar(weights), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    ExpectClassLaw(*open->graph, weights, 3, false, seed);
  }
}

TEST(WeightedSamplerTest, EqualWeightsIncludeAllEquallyOften) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::size_t kDegree = 200;
  const auto open = Build(WeightedStar(std::vector<float>(kDegree, 0.75F)), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({1});
  options.weighted = true;
  options.seed = seed;
  const auto sampler = MakeSampler(*open->graph, options);
  std::map<VertexId, double> observed;
  std::map<VertexId, double> law;
  for (std::size_t v = 1; v <= kDegree; ++v) law[static_cast<VertexId>(v)] = 1.0 / kDegree;
  for (std::uint64_t batch = 0; batch < kSamplerWeightedTrials; ++batch) {
    const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
    ASSERT_OK(sample);
    observed[DrawnFor(*open->graph, *sample, 0).at(0).vertex] += 1;
  }
  ExpectLaw(observed, law, static_cast<double>(kSamplerWeightedTrials));
}

TEST(WeightedSamplerTest, SamplesHoldAsManyEdgesOfPositiveWeightAsThereAre) {
  const std::uint64_t seed = testing::TestSeed();
  GraphInput input = RandomInput(400, 6000, true, seed);
  for (std::size_t e = 0; e < input.edges.weight.size(); e += 2) input.edges.weight[e] = 0;
  const auto open = Build(std::move(input), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const std::vector<VertexId> seeds = AllVertices(*open->graph);
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    for (const std::int64_t fanout : {std::int64_t{3}, std::int64_t{25}, kAllNeighbors}) {
      for (const bool replace : {false, true}) {
        SamplerOptions options = Fanouts({fanout});
        options.weighted = true;
        options.replace = replace;
        options.direction = direction;
        options.seed = seed;
        const auto sample = MakeSampler(*open->graph, options)->Sample(seeds, 0);
        ASSERT_OK(sample);
        for (std::size_t v = 0; v < seeds.size(); ++v) {
          auto all = open->graph->Neighbors(seeds[v], direction);
          ASSERT_OK(all);
          std::erase_if(*all, [](const Neighbor& n) { return n.weight == 0; });
          const bool with = replace && fanout != kAllNeighbors;
          const auto wanted = static_cast<std::size_t>(
              fanout == kAllNeighbors ? static_cast<std::int64_t>(all->size()) : fanout);
          auto drawn = DrawnFor(*open->graph, *sample, v);
          ASSERT_EQ(drawn.size(),
                    with ? (all->empty() ? 0 : wanted) : std::min(wanted, all->size()));
          for (const Neighbor& n : drawn) {
            EXPECT_NE(std::find(all->begin(), all->end(), n), all->end());
          }
          EXPECT_TRUE(with || testing::Contained(drawn, *all));
        }
      }
    }
  }
}

TEST(WeightedSamplerTest, WeightsThatAreNoWeightsAreRefused) {
  for (const float bad : {-1.0F, INFINITY}) {
    const auto open = Build(WeightedStar({1, bad, 2}), RandomPartitions(2));
    ASSERT_NE(open, nullptr);
    SamplerOptions options = Fanouts({1});
    options.weighted = true;
    EXPECT_STATUS(Sampler::Create(*open->graph, options), kInvalidArgument);
  }
}

TEST(WeightTableTest, SumsAndPositionsAreThoseOfTheWeights) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(60, 5000, true, seed), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  const auto table =
      WeightTable::Create(*open->graph, nullptr, WalkedSides(*open->graph, Direction::kIn));
  ASSERT_OK(table);
  std::mt19937_64 random(seed);
  for (PartitionId p = 0; p < 2; ++p) {
    const Adjacency& partition = open->graph->partition(p);
    for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
      const auto list = partition.Neighbors(static_cast<LocalId>(v), Direction::kIn);
      if (list.neighbors.empty()) continue;
      const std::uint64_t first = list.first + random() % list.neighbors.size();
      const std::uint64_t last =
          first + random() % (list.first + list.neighbors.size() - first + 1);
      double sum = 0;
      for (std::uint64_t i = first; i < last; ++i) {
        const double weight = static_cast<double>(partition.Weight(Direction::kIn, i));
        if (weight > 0) {  // whole numbers: sums are exact
          EXPECT_EQ(table->Find(p, first, last, sum), i);
          EXPECT_EQ(table->Find(p, first, last, sum + weight * 0.999), i);
        }
        sum += weight;
      }
      EXPECT_EQ(table->Sum(p, first, last), sum);
    }
  }
}

}  // namespace
}  // namespace rhizome
