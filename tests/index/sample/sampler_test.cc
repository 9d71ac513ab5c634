#include "rhizome/sampler.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/sampler_graphs.h"

// Tests of Sampler on a generation without a delta: the shape of samples, statistical tests of the
// draws, invalid options, memory reuse, and neighbour lists from other sources.

namespace rhizome {
namespace {

using testing::AllVertices;
using testing::Build;
using testing::Contained;
using testing::CountSets;
using testing::DrawnFor;
using testing::EmptyInput;
using testing::Fanouts;
using testing::MakeSampler;
using testing::RandomInput;
using testing::RandomPartitions;
using testing::Same;
using testing::Sort;
using testing::StarInput;

// Checks the shape of a sample, and compares every drawn edge with the graph's lists.
void ExpectValid(const GraphSnapshot& graph, const SamplerOptions& options,
                 std::span<const VertexId> seeds, const SampledSubgraph& sample) {
  const std::size_t hops = options.fanouts.size();
  ASSERT_EQ(sample.hop_offsets.size(), hops + 2);
  ASSERT_EQ(sample.hop_offsets.back(), sample.rows.size());
  ASSERT_TRUE(std::is_sorted(sample.hop_offsets.begin(), sample.hop_offsets.end()));
  ASSERT_EQ(sample.offsets.size(), sample.rows.size() + 1);
  ASSERT_EQ(sample.offsets.back(), sample.neighbors.size());
  ASSERT_EQ(std::set<Row>(sample.rows.begin(), sample.rows.end()).size(), sample.rows.size());
  ASSERT_EQ(sample.seed_locals.size(), seeds.size());
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const auto local = static_cast<std::size_t>(sample.seed_locals[i]);
    ASSERT_LT(local, sample.hop_offsets[1]);
    EXPECT_EQ(*graph.VertexAt(sample.rows[local]), seeds[i]);
  }
  std::int64_t found = static_cast<std::int64_t>(sample.hop_offsets[1]);
  for (std::size_t h = 0; h < hops; ++h) {
    for (std::size_t v = sample.hop_offsets[h]; v < sample.hop_offsets[h + 1]; ++v) {
      for (std::uint64_t e = sample.offsets[v]; e < sample.offsets[v + 1]; ++e) {
        ASSERT_LE(sample.neighbors[e], found) << "numbered out of order";
        found = std::max(found, sample.neighbors[e] + 1);
      }
      std::vector<Neighbor> drawn = DrawnFor(graph, sample, v);
      auto all = graph.Neighbors(*graph.VertexAt(sample.rows[v]), options.direction);
      ASSERT_OK(all);
      const std::int64_t fanout = options.fanouts[h];
      if (options.replace && fanout != kAllNeighbors) {
        ASSERT_EQ(drawn.size(), all->empty() ? 0 : static_cast<std::size_t>(fanout));
        Sort(*all);
        for (const Neighbor& neighbor : drawn) {
          EXPECT_NE(std::find(all->begin(), all->end(), neighbor), all->end());
        }
        continue;
      }
      const std::size_t wanted = fanout == kAllNeighbors
                                     ? all->size()
                                     : std::min(all->size(), static_cast<std::size_t>(fanout));
      ASSERT_EQ(drawn.size(), wanted);
      EXPECT_TRUE(Contained(drawn, *all));
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(found), sample.rows.size());
  for (std::size_t v = sample.hop_offsets[hops]; v < sample.rows.size(); ++v) {
    EXPECT_EQ(sample.offsets[v], sample.offsets[v + 1]) << "the last hop is not expanded";
  }
}

TEST(SamplerTest, SamplesAreSubgraphs) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::uint32_t partitions : {1u, 2u, 5u}) {
    for (const bool rich : {false, true}) {
      const auto open = Build(RandomInput(300, 2500, rich, seed), RandomPartitions(partitions));
      ASSERT_NE(open, nullptr);
      for (const auto& fanouts : std::vector<std::vector<std::int64_t>>{
               {3}, {2, 4, 3}, {kAllNeighbors, 2}, {0, 5}, {40, 50}}) {
        for (const bool replace : {false, true}) {
          for (const Direction direction : {Direction::kIn, Direction::kOut}) {
            SamplerOptions options = Fanouts(fanouts);
            options.replace = replace;
            options.direction = direction;
            options.seed = seed;
            const auto sampler = MakeSampler(*open->graph, options);
            ASSERT_NE(sampler, nullptr);
            const std::vector<VertexId> seeds = {7, 0, 299, 7, 120};
            for (std::uint64_t batch = 0; batch < 2; ++batch) {
              const auto sample = sampler->Sample(seeds, batch);
              ASSERT_OK(sample);
              EXPECT_EQ(sample->types.size(), rich ? sample->neighbors.size() : 0);
              EXPECT_EQ(sample->weights.size(), rich ? sample->neighbors.size() : 0);
              ExpectValid(*open->graph, options, seeds, *sample);
            }
          }
        }
      }
    }
  }
}

TEST(SamplerTest, AllNeighborsAreTheGraphsLists) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool undirected : {false, true}) {
    GraphInput input = RandomInput(200, 1500, true, seed);
    input.undirected = undirected;
    const auto open = Build(std::move(input), RandomPartitions(4));
    ASSERT_NE(open, nullptr);
    const GraphSnapshot& graph = *open->graph;
    const auto sampler = MakeSampler(graph, Fanouts({kAllNeighbors}));
    const std::vector<VertexId> seeds = AllVertices(graph);
    const auto sample = sampler->Sample(seeds, 0);
    ASSERT_OK(sample);
    for (std::size_t v = 0; v < seeds.size(); ++v) {
      auto expected = graph.Neighbors(seeds[v], Direction::kIn);
      ASSERT_OK(expected);
      std::vector<Neighbor> drawn =
          DrawnFor(graph, *sample, static_cast<std::size_t>(sample->seed_locals[v]));
      Sort(drawn);
      Sort(*expected);
      EXPECT_EQ(drawn, *expected);
    }
  }
}

TEST(SamplerTest, ThreadsDoNotChangeTheSample) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(5000, 60000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 900; ++v) seeds.push_back(v * 5);
  for (const bool replace : {false, true}) {
    SamplerOptions options = Fanouts({5, 10, 4});
    options.replace = replace;
    options.seed = seed;
    const auto first = MakeSampler(*open->graph, options)->Sample(seeds, 3);
    ASSERT_OK(first);
    for (const std::uint32_t threads : {1u, 2u, 5u}) {
      options.threads = threads;
      const auto sampler = MakeSampler(*open->graph, options);
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto again = sampler->Sample(seeds, 3);
        ASSERT_OK(again);
        EXPECT_TRUE(Same(*again, *first)) << threads << " threads";
      }
      const auto other_batch = sampler->Sample(seeds, 4);
      ASSERT_OK(other_batch);
      EXPECT_FALSE(Same(*other_batch, *first));
    }
    options.seed = seed + 1;
    const auto other_seed = MakeSampler(*open->graph, options)->Sample(seeds, 3);
    ASSERT_OK(other_seed);
    EXPECT_FALSE(Same(*other_seed, *first));
  }
}

TEST(SamplerTest, CallersMayShareASampler) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(2000, 20000, false, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({5, 5});
  options.threads = 2;
  const auto sampler = MakeSampler(*open->graph, options);
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 500; ++v) seeds.push_back(v * 3);
  constexpr std::uint64_t kBatches = 12;
  std::vector<SampledSubgraph> alone;
  for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
    auto sample = sampler->Sample(seeds, batch);
    ASSERT_OK(sample);
    alone.push_back(*std::move(sample));
  }
  std::vector<std::thread> threads;
  std::vector<int> equal(3);
  for (std::size_t t = 0; t < equal.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
        const auto sample = sampler->Sample(seeds, batch);
        equal[t] += sample && Same(*sample, alone[batch]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>{kBatches, kBatches, kBatches}));
}

// Over many batches each set of neighbours is equally likely, for any partitioning. This covers how
// often each neighbour, and each pair of neighbours, is included.
TEST(SamplerTest, SetsWithoutReplacementAreEquallyLikelyForAnyPartitioning) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::uint64_t kTrials = 12000;
  for (const std::uint32_t partitions : {1u, 2u, 3u, 5u}) {
    const auto open = Build(StarInput(6), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    for (const std::int64_t fanout : {1, 2, 4}) {
      SamplerOptions options = Fanouts({fanout});
      options.seed = seed;
      const auto sampler = MakeSampler(*open->graph, options);
      const auto observed = CountSets(*open->graph, *sampler, kTrials);
      const std::size_t sets = fanout == 1 ? 6 : 15;
      ASSERT_EQ(observed.size(), sets);
      const double expected = static_cast<double>(kTrials) / static_cast<double>(sets);
      double statistic = 0;
      for (const auto& [set, count] : observed) {
        statistic += (count - expected) * (count - expected) / expected;
      }
      EXPECT_LT(statistic, testing::ChiSquareBound(sets - 1))
          << partitions << " partitions, fanout " << fanout;
    }
  }
}

TEST(SamplerTest, DrawsWithReplacementAreIndependentForAnyPartitioning) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::uint64_t kTrials = 12000;
  for (const std::uint32_t partitions : {1u, 2u, 4u}) {
    const auto open = Build(StarInput(5), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    SamplerOptions options = Fanouts({2});
    options.replace = true;
    options.seed = seed;
    const auto sampler = MakeSampler(*open->graph, options);
    std::map<std::pair<VertexId, VertexId>, double> observed;
    for (std::uint64_t batch = 0; batch < kTrials; ++batch) {
      const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
      ASSERT_OK(sample);
      const std::vector<Neighbor> drawn = DrawnFor(*open->graph, *sample, 0);
      ASSERT_EQ(drawn.size(), 2);
      // Partitions are visited in order, so only the unordered pair is random.
      observed[std::minmax(drawn[0].vertex, drawn[1].vertex)] += 1;
    }
    ASSERT_EQ(observed.size(), 15);
    double statistic = 0;
    for (const auto& [pair, count] : observed) {
      const double expected = kTrials * (pair.first == pair.second ? 1.0 : 2.0) / 25;
      statistic += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(statistic, testing::ChiSquareBound(14)) << partitions << " partitions";
  }
}

TEST(SamplerTest, NeighborsOfAHubAreIncludedEquallyOften) {
  const std::uint64_t seed = testing::TestSeed();
  constexpr std::uint64_t kDegree = 300;
  constexpr double kTrials = 3000;
  for (const std::uint32_t partitions : {1u, 4u}) {
    const auto open = Build(StarInput(kDegree), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    for (const std::int64_t fanout : {7, 60}) {
      SamplerOptions options = Fanouts({fanout});
      options.seed = seed;
      const auto sampler = MakeSampler(*open->graph, options);
      std::vector<double> included(kDegree + 1);
      for (std::uint64_t batch = 0; batch < static_cast<std::uint64_t>(kTrials); ++batch) {
        const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
        ASSERT_OK(sample);
        for (const Neighbor& n : DrawnFor(*open->graph, *sample, 0)) {
          included[static_cast<std::size_t>(n.vertex)] += 1;
        }
      }
      const double share = static_cast<double>(fanout) / kDegree;
      const double variance = kTrials * share * (1 - share) * kDegree / (kDegree - 1);
      double statistic = 0;
      for (std::size_t v = 1; v <= kDegree; ++v) {
        statistic += (included[v] - kTrials * share) * (included[v] - kTrials * share) / variance;
      }
      EXPECT_LT(statistic, testing::ChiSquareBound(kDegree - 1))
          << partitions << " partitions, fanout " << fanout;
    }
  }
}

TEST(SamplerTest, ParallelEdgesCountAsOftenAsTheyAre) {
  const std::uint64_t seed = testing::TestSeed();
  GraphInput input = EmptyInput(3);
  for (int copy = 0; copy < 8; ++copy) {  // 1 -> 0 six times, 2 -> 0 twice
    input.edges.src.push_back(copy < 6 ? 1 : 2);
    input.edges.dst.push_back(0);
  }
  const auto open = Build(std::move(input), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({1});
  options.seed = seed;
  const auto sampler = MakeSampler(*open->graph, options);
  constexpr double kTrials = 12000;
  double first = 0;
  for (std::uint64_t batch = 0; batch < static_cast<std::uint64_t>(kTrials); ++batch) {
    const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
    ASSERT_OK(sample);
    first += DrawnFor(*open->graph, *sample, 0)[0].vertex == 1;
  }
  const double deviation = first - kTrials * 0.75;
  EXPECT_LT(deviation * deviation / (kTrials * 0.75 * 0.25), testing::ChiSquareBound(1));
}

TEST(SamplerTest, VerticesWithoutEdgesAndEmptyBatchesGiveNothing) {
  const auto open = Build(EmptyInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({3, 3});
  options.replace = true;
  const auto sampler = MakeSampler(*open->graph, options);
  const auto alone = sampler->Sample(std::vector<VertexId>{2, 2}, 0);
  ASSERT_OK(alone);
  EXPECT_EQ(alone->rows.size(), 1);
  EXPECT_EQ(alone->seed_locals, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(alone->hop_offsets, (std::vector<std::uint64_t>{0, 1, 1, 1}));
  EXPECT_EQ(alone->offsets, (std::vector<std::uint64_t>{0, 0}));
  const auto none = sampler->Sample({}, 0);
  ASSERT_OK(none);
  EXPECT_TRUE(none->rows.empty());
  EXPECT_EQ(none->offsets, (std::vector<std::uint64_t>{0}));
}

TEST(SamplerTest, WithoutHopsThereAreTheSeeds) {
  const auto open = Build(StarInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  for (const Frontier frontier : {Frontier::kOnce, Frontier::kAgain}) {
    SamplerOptions options = Fanouts({});
    options.frontier = frontier;
    const auto seeds =
        MakeSampler(*open->graph, options)->Sample(std::vector<VertexId>{2, 0, 2}, 0);
    ASSERT_OK(seeds);
    EXPECT_EQ(seeds->seed_locals, (std::vector<std::int64_t>{0, 1, 0}));
    EXPECT_EQ(seeds->hop_offsets, (std::vector<std::uint64_t>{0, 2}));
    EXPECT_EQ(seeds->hop_lists, (std::vector<std::uint64_t>{0}));
    EXPECT_TRUE(seeds->neighbors.empty());
  }
}

TEST(SamplerTest, BadOptionsAndSeedsAreRefused) {
  const auto both = Build(StarInput(4), RandomPartitions(2));
  const auto out_only = Build(StarInput(4), RandomPartitions(2, Direction::kOut));
  ASSERT_NE(both, nullptr);
  ASSERT_NE(out_only, nullptr);
  EXPECT_STATUS(Sampler::Create(*both->graph, Fanouts({3, -2})), kInvalidArgument);
  SamplerOptions options = Fanouts({3});
  EXPECT_STATUS(Sampler::Create(*out_only->graph, options), kInvalidArgument);
  options.direction = Direction::kOut;
  EXPECT_OK(Sampler::Create(*out_only->graph, options));
  options.direction = Direction::kBoth;
  EXPECT_STATUS(Sampler::Create(*out_only->graph, options), kInvalidArgument);
  EXPECT_OK(Sampler::Create(*both->graph, options));
  options.edge_ids = true;  // this store has no ids of in-edges
  EXPECT_STATUS(Sampler::Create(*both->graph, options), kInvalidArgument);
  options.edge_ids = false;
  options.direction = Direction::kIn;
  options.threads = 0;
  EXPECT_STATUS(Sampler::Create(*both->graph, options), kInvalidArgument);
  EXPECT_STATUS(Sampler::Create(*both->graph, Fanouts({kMaxFanout + 1})), kInvalidArgument);

  const auto sampler = MakeSampler(*both->graph, Fanouts({3}));
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{1, 5}, 0), kInvalidArgument);
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{-1}, 0), kInvalidArgument);
  // Numbers that a failed batch assigned are forgotten.
  const auto sample = sampler->Sample(std::vector<VertexId>{1}, 0);
  ASSERT_OK(sample);
  EXPECT_EQ(sample->rows.size(), 1);
}

TEST(SamplerTest, OptionsThatExcludeEachOtherAreRefused) {
  const auto open = Build(StarInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  const auto refused = [&](auto change) {
    SamplerOptions options = Fanouts({3, 3});
    change(options);
    const auto sampler = Sampler::Create(*open->graph, options);
    return !sampler && sampler.error().code() == StatusCode::kInvalidArgument;
  };
  const auto times = std::make_shared<testing::NoTimes>();
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.weighted = true; })) << "no weights";
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.meta_path = {0}; })) << "two hops";
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.meta_path = {0, 1}; })) << "one type";
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.typed_fanouts = {{1}}; })) << "both forms";
  EXPECT_TRUE(refused([](SamplerOptions& o) {
    o.fanouts = {};
    o.typed_fanouts = {{1, 2}};
  })) << "one type";
  EXPECT_TRUE(refused([](SamplerOptions& o) {
    o.fanouts = {};
    o.typed_fanouts = {{-2}};
  }));
  EXPECT_TRUE(refused([&](SamplerOptions& o) { o.times = times; })) << "not disjoint";
  EXPECT_TRUE(refused([&](SamplerOptions& o) {
    o.times = times;
    o.disjoint = true;
  })) << "no time for an edge";
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.temporal_pick = TemporalPick::kLast; }));
  EXPECT_TRUE(refused([](SamplerOptions& o) { o.edge_ids = true; })) << "not kept for in-edges";
}

TEST(SamplerTest, DrawsBeyondTheLimitAreRefused) {
  const auto open = Build(StarInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({kMaxFanout});
  options.replace = true;
  const auto sampler = MakeSampler(*open->graph, options);
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{1, 2, 3, 4}, 0), kInvalidArgument);
  options.replace = false;
  const auto all = MakeSampler(*open->graph, options)->Sample(std::vector<VertexId>{0}, 0);
  ASSERT_OK(all);
  EXPECT_EQ(all->neighbors.size(), 4);
  EXPECT_STATUS(sampler->Sample(std::vector<VertexId>{1}, std::vector<std::int64_t>{5}, 0),
                kInvalidArgument);
}

TEST(SamplerTest, MemoryOfAnEarlierSampleMayBeUsedAgain) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(500, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  for (const bool disjoint : {false, true}) {
    SamplerOptions options = Fanouts({4, 3});
    options.disjoint = disjoint;
    const auto sampler = MakeSampler(*open->graph, options);
    SampledSubgraph reused;
    for (std::uint64_t batch = 0; batch < 6; ++batch) {
      const std::vector<VertexId> seeds(1 + (batch * 7) % 5, static_cast<VertexId>(batch));
      ASSERT_OK(sampler->SampleInto(seeds, {}, batch, reused));
      const auto fresh = sampler->Sample(seeds, batch);
      ASSERT_OK(fresh);
      EXPECT_TRUE(Same(reused, *fresh));
    }
    EXPECT_STATUS(sampler->SampleInto(std::vector<VertexId>{-1}, {}, 0, reused), kInvalidArgument);
    EXPECT_TRUE(reused.rows.empty());
  }
}

TEST(SamplerTest, ListsMayBeReadElsewhere) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(3000, 30000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 900; ++v) seeds.push_back(v * 3);
  for (const std::uint32_t threads : {1U, 3U}) {
    SamplerOptions options = Fanouts({3, 2});
    options.threads = threads;
    const auto expected = MakeSampler(*open->graph, options)->Sample(seeds, 1);
    ASSERT_OK(expected);
    for (const bool whole_hops : {false, true}) {
      auto source = std::make_shared<testing::CountingSource>(*open->graph, whole_hops);
      auto sampler = Sampler::Create(*open->graph, options, source);
      ASSERT_OK(sampler);
      const auto sample = (*sampler)->Sample(seeds, 1);
      ASSERT_OK(sample);
      EXPECT_TRUE(Same(*sample, *expected));
      EXPECT_EQ(source->looked_up, sample->neighbors.size());
      EXPECT_TRUE(!whole_hops || source->calls == 2);
      source->fail_at = source->calls + 2;
      EXPECT_STATUS((*sampler)->Sample(seeds, 1), kIoError);
      const auto again = (*sampler)->Sample(seeds, 1);
      ASSERT_OK(again);
      EXPECT_TRUE(Same(*again, *expected)) << "a failed batch left something behind";
    }
  }
}

}  // namespace
}  // namespace rhizome
