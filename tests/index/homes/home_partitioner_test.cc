#include "index/homes/home_partitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "index/homes/home_graph.h"
#include "index/homes/home_refinement.h"
#include "index/partition_graphs.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

TestGraph RandomGraph(std::uint64_t vertices, std::uint64_t edges, std::mt19937_64& random) {
  TestGraph graph{.name = "random", .vertex_count = vertices, .src = {}, .dst = {}};
  for (std::uint64_t e = 0; e < edges; ++e) graph.Add(random() % vertices, random() % vertices);
  return graph;
}

std::vector<VertexId> DrawSeeds(std::uint64_t vertices, std::uint64_t one_in,
                                std::mt19937_64& random) {
  std::vector<VertexId> seeds;
  for (std::uint64_t v = 0; v < vertices; ++v)
    if (random() % one_in == 0) seeds.push_back(static_cast<VertexId>(v));
  return seeds;
}

std::uint64_t CutBetween(const TestGraph& graph, const std::vector<PartitionId>& home_of) {
  std::uint64_t cut = 0;
  for (std::size_t e = 0; e < graph.src.size(); ++e) {
    if (home_of[static_cast<std::size_t>(graph.src[e])] !=
        home_of[static_cast<std::size_t>(graph.dst[e])])
      ++cut;
  }
  return cut;
}

/// Returns the maximum load of a home if the total load is `total`.
std::uint64_t Cap(std::uint64_t total, std::uint32_t homes, double balance) {
  const double mean = static_cast<double>(total) / homes;
  return static_cast<std::uint64_t>(std::max(std::floor(mean * balance), std::ceil(mean)));
}

void ExpectBalanced(const std::vector<PartitionId>& home_of, const std::vector<VertexId>& seeds,
                    std::uint32_t homes, double balance) {
  std::vector<std::uint64_t> rows(homes);
  std::vector<std::uint64_t> of_seeds(homes);
  for (const PartitionId home : home_of) ++rows.at(home);
  for (const VertexId seed : seeds) ++of_seeds[home_of[static_cast<std::size_t>(seed)]];
  EXPECT_LE(*std::max_element(rows.begin(), rows.end()), Cap(home_of.size(), homes, balance));
  EXPECT_LE(*std::max_element(of_seeds.begin(), of_seeds.end()), Cap(seeds.size(), homes, balance));
}

/// Returns the minimum cut over all divisions into two sides with at most `cap` vertices each.
std::uint64_t LeastCut(const TestGraph& graph, std::uint64_t cap) {
  const auto n = static_cast<unsigned>(graph.vertex_count);
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (unsigned sides = 0; sides < 1U << n; ++sides) {
    const auto ones = static_cast<std::uint64_t>(__builtin_popcount(sides));
    if (ones > cap || n - ones > cap) continue;
    std::vector<PartitionId> home_of(n);
    for (unsigned v = 0; v < n; ++v) home_of[v] = sides >> v & 1;
    least = std::min(least, CutBetween(graph, home_of));
  }
  return least;
}

TEST(HomePartitionerTest, SmallGraphsAreCutBest) {
  std::mt19937_64 random(testing::TestSeed());
  int best = 0;
  constexpr int kGraphs = 300;  // large enough to rule out chance
  for (int i = 0; i < kGraphs; ++i) {
    const TestGraph graph = RandomGraph(12, 12 + random() % 20, random);
    const auto home_of = DivideRows(
        graph.input(), {}, {.homes = 2, .max_balance = 1.2, .seed = random()}, JobControl());
    ASSERT_OK(home_of);
    ExpectBalanced(*home_of, {}, 2, 1.2);
    const std::uint64_t least = LeastCut(graph, Cap(12, 2, 1.2));
    EXPECT_GE(CutBetween(graph, *home_of), least);
    best += CutBetween(graph, *home_of) == least ? 1 : 0;
  }
  EXPECT_GE(best, kGraphs * 9 / 10);
}

TEST(HomePartitionerTest, BothLoadsAreWithinTheirBound) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::uint32_t homes : {1U, 2U, 3U, 7U, 16U}) {
    for (const TestGraph& graph :
         {Rmat(12, 30'000, random()), RandomGraph(3000, 3000, random), RandomGraph(50, 400, random),
          RandomGraph(5, 3, random), RandomGraph(900, 0, random)}) {
      SCOPED_TRACE(fmt::format("{} homes, {} vertices", homes, graph.vertex_count));
      const std::vector<VertexId> seeds = DrawSeeds(graph.vertex_count, 1 + random() % 9, random);
      const double balance = 1 + 0.01 * static_cast<double>(random() % 20);
      const HomeOptions options{.homes = homes, .max_balance = balance, .seed = random()};
      const auto home_of = DivideRows(graph.input(), seeds, options, JobControl());
      ASSERT_OK(home_of);
      ASSERT_EQ(home_of->size(), graph.vertex_count);
      ExpectBalanced(*home_of, seeds, homes, balance);
      EXPECT_EQ(*DivideRows(graph.input(), seeds, options, JobControl()), *home_of);
    }
  }
}

// Eight blocks with many inner and few outer edges are found, for any numbering of the vertices.
TEST(HomePartitionerTest, PlantedBlocksAreFound) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::uint64_t kBlocks = 8;
  constexpr std::uint64_t kVertices = 4000;
  std::vector<std::uint64_t> number(kVertices);
  std::iota(number.begin(), number.end(), 0);
  std::shuffle(number.begin(), number.end(), random);
  TestGraph graph{.name = "planted", .vertex_count = kVertices, .src = {}, .dst = {}};
  std::uint64_t planted = 0;
  for (std::uint64_t e = 0; e < 12 * kVertices; ++e) {
    const std::uint64_t u = random() % kVertices;
    const bool outer = random() % 10 == 0;
    const std::uint64_t v =
        outer ? random() % kVertices : random() % (kVertices / kBlocks) * kBlocks + u % kBlocks;
    planted += u % kBlocks != v % kBlocks ? 1 : 0;
    graph.Add(number[u], number[v]);
  }
  const auto home_of = DivideRows(graph.input(), {}, {.homes = kBlocks}, JobControl());
  ASSERT_OK(home_of);
  EXPECT_LE(CutBetween(graph, *home_of), planted);
}

TEST(HomePartitionerTest, MetricsEqualTheirDefinition) {
  std::mt19937_64 random(testing::TestSeed());
  const TestGraph graph = RandomGraph(60, 300, random);
  const std::vector<VertexId> seeds = {3, 4, 5, 50};
  std::vector<PartitionId> home_of(60);
  for (PartitionId& home : home_of) home = static_cast<PartitionId>(random() % 3);
  const auto metrics = MeasureHomes(graph.input(), seeds, home_of, 3);
  ASSERT_OK(metrics);
  std::uint64_t loops = 0;
  for (std::size_t e = 0; e < graph.src.size(); ++e) loops += graph.src[e] == graph.dst[e] ? 1 : 0;
  EXPECT_DOUBLE_EQ(metrics->cut_share, static_cast<double>(CutBetween(graph, home_of)) /
                                           static_cast<double>(graph.src.size() - loops));
  std::vector<double> rows(3);
  std::vector<double> of_seeds(3);
  for (const PartitionId home : home_of) rows[home] += 1;
  for (const VertexId seed : seeds) of_seeds[home_of[static_cast<std::size_t>(seed)]] += 1;
  EXPECT_DOUBLE_EQ(metrics->row_balance, *std::max_element(rows.begin(), rows.end()) / 20);
  EXPECT_DOUBLE_EQ(metrics->seed_balance,
                   *std::max_element(of_seeds.begin(), of_seeds.end()) / (4 / 3.0));
}

// The cut that the search maintains equals the cut of the graph after any moves.
TEST(HomePartitionerTest, RefinementNeverCutsMoreAndCountsRight) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 20; ++i) {
    const TestGraph graph = RandomGraph(200, 900, random);
    const auto homes = static_cast<std::uint32_t>(2 + random() % 5);
    HomeGraph fine = *HomeGraph::Create(graph.input(), {});
    std::vector<PartitionId> home_of(200);
    for (std::size_t v = 0; v < home_of.size(); ++v)
      home_of[v] = static_cast<PartitionId>(v % homes);
    const std::uint64_t before = CutBetween(graph, home_of);
    const std::vector<HomeLoad> caps(homes, {.rows = Cap(200, homes, 1.1), .seeds = 0});
    HomeRefinement refinement(fine, caps, home_of, random());
    refinement.Run();
    EXPECT_TRUE(refinement.balanced());
    EXPECT_EQ(refinement.CutOf(), CutBetween(graph, home_of));
    EXPECT_LT(CutBetween(graph, home_of), before);
  }
}

TEST(HomePartitionerTest, ContractionKeepsLoadsAndTheEdgesBetweenClusters) {
  std::mt19937_64 random(testing::TestSeed());
  const TestGraph graph = RandomGraph(100, 500, random);
  const std::vector<VertexId> seeds = DrawSeeds(100, 3, random);
  const HomeGraph fine = *HomeGraph::Create(graph.input(), seeds);
  std::vector<std::uint32_t> cluster_of(100);
  for (std::uint32_t& cluster : cluster_of) cluster = static_cast<std::uint32_t>(random() % 9);
  const HomeGraph coarse = fine.Contract(cluster_of, 9);
  EXPECT_EQ(coarse.total().rows, 100U);
  EXPECT_EQ(coarse.total().seeds, seeds.size());
  std::vector<PartitionId> home_of(cluster_of.begin(), cluster_of.end());
  std::uint64_t twice = 0;
  for (std::uint32_t c = 0; c < 9; ++c) {
    coarse.ForEachNeighbor(c, [&](std::uint32_t other, std::uint32_t weight) {
      EXPECT_NE(other, c);
      twice += weight;
    });
  }
  EXPECT_EQ(twice, 2 * CutBetween(graph, home_of));
}

TEST(HomePartitionerTest, BadInputIsRefused) {
  const TestGraph graph{.name = "", .vertex_count = 3, .src = {0, 1}, .dst = {1, 2}};
  const auto divide = [&](std::vector<VertexId> seeds, const HomeOptions& options) {
    return DivideRows(graph.input(), seeds, options, JobControl());
  };
  EXPECT_STATUS(divide({}, {.homes = 0}), kInvalidArgument);
  EXPECT_STATUS(divide({}, {.homes = kMaxPartitions + 1}), kInvalidArgument);
  EXPECT_STATUS(divide({}, {.homes = 2, .max_balance = 0.9}), kInvalidArgument);
  EXPECT_STATUS(divide({}, {.homes = 2, .max_balance = std::nan("")}), kInvalidArgument);
  EXPECT_STATUS(divide({3}, {.homes = 2}), kInvalidArgument);
  EXPECT_STATUS(divide({-1}, {.homes = 2}), kInvalidArgument);
  EXPECT_STATUS(divide({1, 1}, {.homes = 2}), kInvalidArgument);
  EXPECT_OK(divide({1}, {.homes = 8}));
  EXPECT_STATUS(MeasureHomes(graph.input(), {}, std::vector<PartitionId>{0, 1}, 2),
                kInvalidArgument);
  EXPECT_STATUS(MeasureHomes(graph.input(), {}, std::vector<PartitionId>{0, 1, 2}, 2),
                kInvalidArgument);
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(DivideRows(graph.input(), {}, {.homes = 2}, cancelled), kInterrupted);
}

}  // namespace
}  // namespace rhizome
