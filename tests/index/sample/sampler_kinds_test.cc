#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/sampler_graphs.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {
namespace {

using testing::AllVertices;
using testing::Build;
using testing::CountSets;
using testing::DrawnFor;
using testing::EmptyInput;
using testing::ExpectLaw;
using testing::Fanouts;
using testing::MakeSampler;
using testing::RandomInput;
using testing::RandomPartitions;
using testing::Same;
using testing::StarInput;

constexpr std::uint64_t kTrials = 12000;

// Visits every list of a sample, with its hop and the vertex that it was drawn for.
void ForEachList(const SampledSubgraph& sample, Frontier frontier,
                 const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  for (std::size_t hop = 0; hop + 1 < sample.hop_lists.size(); ++hop) {
    for (std::size_t list = sample.hop_lists[hop]; list < sample.hop_lists[hop + 1]; ++list) {
      visit(hop, list, sample.VertexOfList(hop, list, frontier));
    }
  }
}

TEST(TypedSamplerTest, EachTypeHasItsOwnFanout) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const GraphSnapshot& graph = *open->graph;
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    SamplerOptions options;
    options.typed_fanouts = {{2, 0, 5}, {kAllNeighbors, 1, 0}};
    options.direction = direction;
    options.seed = seed;
    const auto sample = MakeSampler(graph, options)->Sample(std::vector<VertexId>{1, 17, 200}, 0);
    ASSERT_OK(sample);
    ForEachList(*sample, options.frontier, [&](std::size_t hop, std::size_t list, std::size_t v) {
      const VertexId vertex = *graph.VertexAt(sample->rows[v]);
      auto drawn = DrawnFor(graph, *sample, list);
      auto all = graph.Neighbors(vertex, direction);
      ASSERT_OK(all);
      for (TypeId type = 0; type < 3; ++type) {
        const auto of_type = [&](const Neighbor& n) { return n.type == type; };
        const auto have = std::count_if(all->begin(), all->end(), of_type);
        const std::int64_t fanout = options.typed_fanouts[hop][type];
        EXPECT_EQ(std::count_if(drawn.begin(), drawn.end(), of_type),
                  fanout == kAllNeighbors ? have : std::min<std::int64_t>(have, fanout));
      }
      EXPECT_TRUE(testing::Contained(drawn, *all));
    });
  }
}

// The types of a vertex's edges if both directions have types of their own: its out-list's, each
// plus the number of types, then its in-list's.
std::vector<TypeId> TypesBySide(const GraphSnapshot& graph, VertexId vertex) {
  const auto shift = static_cast<TypeId>(std::max<std::size_t>(graph.edge_types().size(), 1));
  std::vector<TypeId> types;
  const auto out = graph.Neighbors(vertex, Direction::kOut);
  const auto in = graph.Neighbors(vertex, Direction::kIn);
  for (const Neighbor& n : out.value()) types.push_back(static_cast<TypeId>(n.type + shift));
  for (const Neighbor& n : in.value()) types.push_back(n.type);
  return types;
}

TEST(TypedSamplerTest, TypesTellBothDirectionsApart) {
  const std::uint64_t seed = testing::TestSeed();
  for (const bool typed : {false, true}) {
    const auto open = Build(RandomInput(200, 3000, typed, seed), RandomPartitions(3));
    ASSERT_NE(open, nullptr);
    const GraphSnapshot& graph = *open->graph;
    SamplerOptions options{.fanouts = {kAllNeighbors}, .direction = Direction::kBoth};
    options.types_by_side = true;
    std::size_t of_out = 0;
    for (const VertexId vertex : AllVertices(graph)) {
      const auto sample = MakeSampler(graph, options)->Sample(std::array{vertex}, 0);
      ASSERT_OK(sample);
      std::vector<TypeId> types = TypesBySide(graph, vertex);
      std::sort(types.begin(), types.end());
      std::vector<TypeId> got = sample->types;
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, types);
      of_out += static_cast<std::size_t>(std::count_if(
          got.begin(), got.end(), [&](TypeId type) { return type >= (typed ? 3 : 1); }));
    }
    EXPECT_EQ(of_out, 3000U);
    // One direction, or lists that are the same for both, have plain types.
    options.direction = Direction::kOut;
    const auto one = MakeSampler(graph, options)->Sample(AllVertices(graph), 0);
    ASSERT_OK(one);
    EXPECT_EQ(one->types.empty(), !typed);
    for (const TypeId type : one->types) EXPECT_LT(type, 3);
  }
  GraphInput input = RandomInput(100, 500, true, seed);
  input.undirected = true;
  const auto symmetric = Build(std::move(input), RandomPartitions(2));
  ASSERT_NE(symmetric, nullptr);
  SamplerOptions options{.fanouts = {kAllNeighbors}, .direction = Direction::kBoth};
  options.types_by_side = true;
  const auto sample =
      MakeSampler(*symmetric->graph, options)->Sample(AllVertices(*symmetric->graph), 0);
  ASSERT_OK(sample);
  for (const TypeId type : sample->types) EXPECT_LT(type, 3);
}

TEST(TypedSamplerTest, AMetaPathWalksOneTypeAHop) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const GraphSnapshot& graph = *open->graph;
  SamplerOptions options = Fanouts({4, kAllNeighbors, 3});
  options.meta_path = {2, 0, 1};
  options.seed = seed;
  const auto sample = MakeSampler(graph, options)->Sample(std::vector<VertexId>{1, 17, 200}, 0);
  ASSERT_OK(sample);
  EXPECT_GT(sample->neighbors.size(), 0);
  ForEachList(*sample, options.frontier, [&](std::size_t hop, std::size_t list, std::size_t v) {
    auto drawn = DrawnFor(graph, *sample, list);
    auto all = graph.NeighborsOfType(*graph.VertexAt(sample->rows[v]), Direction::kIn,
                                     options.meta_path[hop]);
    ASSERT_OK(all);
    const std::int64_t fanout = options.fanouts[hop];
    EXPECT_EQ(drawn.size(), fanout == kAllNeighbors
                                ? all->size()
                                : std::min(all->size(), static_cast<std::size_t>(fanout)));
    EXPECT_TRUE(testing::Contained(drawn, *all));
  });
}

// Draws two of four edges of one type and one of three of another. All sets are equally likely, and
// the types are independent.
TEST(TypedSamplerTest, SetsOfEachTypeAreEquallyLikely) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::uint32_t partitions : {1U, 3U}) {
    GraphInput input = StarInput(7);
    input.edge_type_names = {"a", "b"};
    input.edges.type = {0, 0, 0, 0, 1, 1, 1};
    const auto open = Build(std::move(input), RandomPartitions(partitions));
    ASSERT_NE(open, nullptr);
    SamplerOptions options;
    options.typed_fanouts = {{2, 1}};
    options.seed = seed;
    const auto sampler = MakeSampler(*open->graph, options);
    std::map<std::vector<VertexId>, double> law;
    for (VertexId a = 1; a <= 4; ++a) {
      for (VertexId b = a + 1; b <= 4; ++b) {
        for (VertexId c = 5; c <= 7; ++c) law[{a, b, c}] = 1.0 / 18;
      }
    }
    const auto observed = CountSets(*open->graph, *sampler, kTrials);
    ExpectLaw(observed, law, static_cast<double>(kTrials));
  }
}

TEST(DisjointSamplerTest, SubgraphsShareNoVertex) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const GraphSnapshot& graph = *open->graph;
  const std::vector<VertexId> seeds = {7, 0, 299, 7, 120};
  for (const Frontier frontier : {Frontier::kOnce, Frontier::kAgain}) {
    SamplerOptions options = Fanouts({5, 3, 2});
    options.disjoint = true;
    options.frontier = frontier;
    options.seed = seed;
    const auto sample = MakeSampler(graph, options)->Sample(seeds, 0);
    ASSERT_OK(sample);
    ASSERT_EQ(sample->seed_of.size(), sample->rows.size());
    ASSERT_EQ(sample->hop_offsets[1], seeds.size());
    std::set<std::pair<std::uint32_t, Row>> distinct;
    for (std::size_t v = 0; v < sample->rows.size(); ++v) {
      EXPECT_TRUE(distinct.insert({sample->seed_of[v], sample->rows[v]}).second);
    }
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      EXPECT_EQ(sample->seed_locals[i], static_cast<std::int64_t>(i));
      EXPECT_EQ(sample->seed_of[i], i);
      EXPECT_EQ(*graph.VertexAt(sample->rows[i]), seeds[i]);
    }
    ForEachList(*sample, frontier, [&](std::size_t hop, std::size_t list, std::size_t v) {
      for (std::uint64_t e = sample->offsets[list]; e < sample->offsets[list + 1]; ++e) {
        EXPECT_EQ(sample->seed_of[static_cast<std::size_t>(sample->neighbors[e])],
                  sample->seed_of[v]);
      }
      auto drawn = DrawnFor(graph, *sample, list);
      auto all = graph.Neighbors(*graph.VertexAt(sample->rows[v]), Direction::kIn);
      ASSERT_OK(all);
      EXPECT_EQ(drawn.size(),
                std::min(all->size(), static_cast<std::size_t>(options.fanouts[hop])));
      EXPECT_TRUE(testing::Contained(drawn, *all));
    });
  }
}

// Counts the pairs of neighbours that `draw` returns over all trials. All pairs must be equally
// likely.
void ExpectIndependentPairs(
    std::int64_t neighbors,
    const std::function<std::pair<VertexId, VertexId>(std::uint64_t)>& draw) {
  std::map<std::pair<VertexId, VertexId>, double> observed;
  std::map<std::pair<VertexId, VertexId>, double> law;
  for (VertexId a = 1; a <= neighbors; ++a) {
    for (VertexId b = 1; b <= neighbors; ++b) {
      law[{a, b}] = 1.0 / static_cast<double>(neighbors * neighbors);
    }
  }
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) observed[draw(trial)] += 1;
  ExpectLaw(observed, law, static_cast<double>(kTrials));
}

TEST(DisjointSamplerTest, TheSameSeedTwiceIsDrawnForIndependently) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(StarInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({1});
  options.disjoint = true;
  options.seed = seed;
  const auto sampler = MakeSampler(*open->graph, options);
  ExpectIndependentPairs(4, [&](std::uint64_t batch) {
    const auto sample = sampler->Sample(std::vector<VertexId>{0, 0}, batch);
    EXPECT_OK(sample);
    return std::pair(DrawnFor(*open->graph, *sample, 0).at(0).vertex,
                     DrawnFor(*open->graph, *sample, 1).at(0).vertex);
  });
}

TEST(FrontierSamplerTest, EveryHopExpandsAllThatAreKnown) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  const GraphSnapshot& graph = *open->graph;
  SamplerOptions options = Fanouts({4, 2, 3});
  options.frontier = Frontier::kAgain;
  options.seed = seed;
  const auto sample = MakeSampler(graph, options)->Sample(std::vector<VertexId>{7, 0, 7, 120}, 0);
  ASSERT_OK(sample);
  ASSERT_EQ(sample->hop_lists.size(), 4);
  ASSERT_EQ(sample->offsets.size(), sample->hop_lists.back() + 1);
  ASSERT_EQ(sample->offsets.back(), sample->neighbors.size());
  for (std::size_t hop = 0; hop < 3; ++hop) {
    EXPECT_EQ(sample->hop_lists[hop + 1] - sample->hop_lists[hop], sample->hop_offsets[hop + 1]);
  }
  EXPECT_EQ(std::set<Row>(sample->rows.begin(), sample->rows.end()).size(), sample->rows.size());
  ForEachList(*sample, options.frontier, [&](std::size_t hop, std::size_t list, std::size_t v) {
    for (std::uint64_t e = sample->offsets[list]; e < sample->offsets[list + 1]; ++e) {
      EXPECT_LT(static_cast<std::uint64_t>(sample->neighbors[e]), sample->hop_offsets[hop + 2]);
    }
    auto drawn = DrawnFor(graph, *sample, list);
    auto all = graph.Neighbors(*graph.VertexAt(sample->rows[v]), Direction::kIn);
    ASSERT_OK(all);
    EXPECT_EQ(drawn.size(), std::min(all->size(), static_cast<std::size_t>(options.fanouts[hop])));
    EXPECT_TRUE(testing::Contained(drawn, *all));
  });
}

TEST(FrontierSamplerTest, DrawsOfTwoHopsAreIndependent) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(StarInput(4), RandomPartitions(2));
  ASSERT_NE(open, nullptr);
  SamplerOptions options = Fanouts({1, 1});
  options.frontier = Frontier::kAgain;
  options.seed = seed;
  const auto sampler = MakeSampler(*open->graph, options);
  ExpectIndependentPairs(4, [&](std::uint64_t batch) {
    const auto sample = sampler->Sample(std::vector<VertexId>{0}, batch);
    EXPECT_OK(sample);
    return std::pair(DrawnFor(*open->graph, *sample, 0).at(0).vertex,
                     DrawnFor(*open->graph, *sample, sample->hop_lists[1]).at(0).vertex);
  });
}

TEST(SamplerKindsTest, ThreadsChangeNoneOfThem) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(4000, 50000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 900; ++v) seeds.push_back(v * 4);
  const std::vector<std::function<void(SamplerOptions&)>> kinds = {
      [](SamplerOptions& o) { o.weighted = true; },
      [](SamplerOptions& o) {
        o.weighted = true;
        o.replace = true;
      },
      [](SamplerOptions& o) { o.frontier = Frontier::kAgain; },
      [](SamplerOptions& o) { o.disjoint = true; },
      [](SamplerOptions& o) {
        o.meta_path = {1, 2};
      },
      [](SamplerOptions& o) {
        o.fanouts = {};
        o.typed_fanouts = {{2, 3, 1}, {1, 0, 4}};
      },
      [](SamplerOptions& o) { o.edge_ids = true; }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SamplerOptions options = Fanouts({4, 3});
    options.seed = seed;
    kinds[kind](options);
    const auto first = MakeSampler(*open->graph, options)->Sample(seeds, 3);
    ASSERT_OK(first);
    for (const std::uint32_t threads : {2U, 5U}) {
      options.threads = threads;
      const auto again = MakeSampler(*open->graph, options)->Sample(seeds, 3);
      ASSERT_OK(again);
      EXPECT_TRUE(Same(*again, *first)) << "kind " << kind << ", " << threads << " threads";
    }
  }
}

TEST(SamplerKindsTest, EdgeIdsNameTheEdges) {
  const std::uint64_t seed = testing::TestSeed();
  const auto open = Build(RandomInput(300, 4000, true, seed), RandomPartitions(3));
  ASSERT_NE(open, nullptr);
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    SamplerOptions options = Fanouts({5, 3});
    options.edge_ids = true;
    options.direction = direction;
    const auto sample =
        MakeSampler(*open->graph, options)->Sample(std::vector<VertexId>{1, 2, 3}, 0);
    ASSERT_OK(sample);
    ASSERT_EQ(sample->edges.size(), sample->neighbors.size());
    for (std::size_t e = 0; e < sample->edges.size(); ++e) {
      const EdgeId edge = sample->edges[e];
      const auto type = open->graph->TypeOfEdge(edge);
      ASSERT_OK(type);
      EXPECT_EQ(*type, sample->types[e]);
      EXPECT_EQ(open->graph->partition(edge.partition).Weight(Direction::kOut, edge.position),
                sample->weights[e]);
    }
  }
}

}  // namespace
}  // namespace rhizome
