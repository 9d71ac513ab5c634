#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/sample/compressed_neighbors.h"
#include "index/sampler_graphs.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

// Tests of samples that leave out the edges between pairs of vertices. The oracle is a search over
// the lists of Graph without these edges, on graphs with loops, parallel edges, edges in both
// directions and a delta.

namespace rhizome {
namespace {

using testing::Contained;
using testing::DrawnFor;
using testing::Fanouts;
using testing::MakeSampler;
using testing::Same;
using testing::Sort;

std::vector<Direction> WalkableDirections(const GraphSnapshot& graph) {
  if (graph.info().symmetric || graph.info().directions == Direction::kBoth)
    return {Direction::kOut, Direction::kIn, Direction::kBoth};
  return {graph.info().directions};
}

bool IsBetween(const std::vector<VertexPair>& pairs, VertexId a, VertexId b) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const VertexPair& pair) {
    return (pair.src == a && pair.dst == b) || (pair.src == b && pair.dst == a);
  });
}

/// The list of a vertex without the edges of pairs, sorted.
std::vector<Neighbor> ListWithout(const GraphSnapshot& graph, VertexId vertex, Direction direction,
                                  const std::vector<VertexPair>& pairs) {
  const auto list = graph.Neighbors(vertex, direction);
  EXPECT_OK(list);
  std::vector<Neighbor> kept = list ? *list : std::vector<Neighbor>();
  std::erase_if(kept, [&](const Neighbor& n) { return IsBetween(pairs, vertex, n.vertex); });
  Sort(kept);
  return kept;
}

/// Random pairs; most are the ends of edges, in either order.
std::vector<VertexPair> DrawPairs(const GraphSnapshot& graph, std::mt19937_64& random) {
  std::vector<VertexPair> pairs;
  const Direction direction = WalkableDirections(graph).back();
  for (std::uint64_t i = random() % 12; i > 0; --i) {
    VertexPair pair{static_cast<VertexId>(random() % graph.vertex_count()),
                    static_cast<VertexId>(random() % graph.vertex_count()), 0};
    const auto list = graph.Neighbors(pair.src, direction);
    if (list && !list->empty() && random() % 4 != 0)
      pair.dst = (*list)[random() % list->size()].vertex;
    if (random() % 2 == 0) std::swap(pair.src, pair.dst);
    pair.type = static_cast<TypeId>(random());  // is ignored
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<VertexId> DrawSeeds(const GraphSnapshot& graph, std::mt19937_64& random) {
  std::vector<VertexId> seeds;
  for (std::uint64_t i = 1 + random() % 6; i > 0; --i)
    seeds.push_back(static_cast<VertexId>(random() % graph.vertex_count()));
  return seeds;
}

SampledSubgraph SampleWithout(const Sampler& sampler, const std::vector<VertexId>& seeds,
                              const std::vector<VertexPair>& pairs) {
  SampledSubgraph out;
  EXPECT_OK(sampler.SampleInto(seeds, {}, 5, pairs, out));
  return out;
}

/// Expects two hops of all neighbours to have the vertices and lists of the graph without the
/// edges.
void ExpectWholeHops(const GraphSnapshot& graph, Direction direction, std::mt19937_64& random) {
  const std::vector<VertexId> seeds = DrawSeeds(graph, random);
  const std::vector<VertexPair> pairs = DrawPairs(graph, random);
  SamplerOptions options = Fanouts({kAllNeighbors, kAllNeighbors});
  options.direction = direction;
  options.induced = random() % 3 == 0;
  if (!options.induced && random() % 2 == 0) options.frontier = Frontier::kAgain;
  const auto sampler = MakeSampler(graph, options);
  ASSERT_NE(sampler, nullptr);
  const SampledSubgraph sample = SampleWithout(*sampler, seeds, pairs);

  std::set<VertexId> known(seeds.begin(), seeds.end());
  for (std::size_t hop = 0; hop < 3; ++hop) {
    std::set<VertexId> found;
    for (std::uint64_t v = 0; v < sample.hop_offsets[hop + 1]; ++v)
      found.insert(*graph.VertexAt(sample.rows[v]));
    EXPECT_EQ(found, known) << "hop " << hop;
    for (const VertexId vertex : found)
      for (const Neighbor& n : ListWithout(graph, vertex, direction, pairs)) known.insert(n.vertex);
  }
  const auto in_sample = [&](VertexId vertex) {
    return std::any_of(sample.rows.begin(), sample.rows.end(),
                       [&](Row row) { return *graph.VertexAt(row) == vertex; });
  };
  for (std::size_t hop = 0; hop < 2; ++hop) {
    for (std::uint64_t list = sample.hop_lists[hop]; list < sample.hop_lists[hop + 1]; ++list) {
      const std::uint64_t v = sample.VertexOfList(hop, list, options.frontier);
      auto expected = ListWithout(graph, *graph.VertexAt(sample.rows[v]), direction, pairs);
      if (options.induced)
        std::erase_if(expected, [&](const Neighbor& n) { return !in_sample(n.vertex); });
      auto drawn = DrawnFor(graph, sample, list);
      Sort(drawn);
      EXPECT_EQ(drawn, expected);
    }
  }
}

/// Returns options of a kind of sampling that draws some neighbours.
SamplerOptions DrawOptions(const GraphSnapshot& graph, Direction direction,
                           std::mt19937_64& random) {
  SamplerOptions options = Fanouts({2, 3});
  options.direction = direction;
  options.seed = random();
  options.replace = random() % 3 == 0;
  options.disjoint = random() % 3 == 0;
  if (random() % 3 == 0) {
    options.fanouts.clear();
    options.typed_fanouts.assign(2, std::vector<std::int64_t>(graph.edge_types().size(), 1));
  }
  options.types_by_side = random() % 2 == 0;
  bool kept = true;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p)
    kept = kept && graph.partition(p).has_edge_ids(Direction::kIn);
  options.edge_ids = kept && random() % 2 == 0;
  return options;
}

/// The in-lists in memory, looked up as if they were on disk.
class WholeHops final : public NeighborSource {
 public:
  explicit WholeHops(const GraphSnapshot& graph)
      : lists_(ResidentNeighbors(graph, Direction::kIn).value()) {}
  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override {
    return lists_->LookUp(entries, rows);
  }
  bool wants_whole_hops() const override { return true; }

 private:
  const std::shared_ptr<const NeighborSource> lists_;
};

/// Expects the draws for seeds to equal the draws without pairs, except for the edges of pairs, and
/// the same sample with any threads and look-ups.
void ExpectSomeNeighbors(const GraphSnapshot& graph, Direction direction, std::mt19937_64& random) {
  const std::vector<VertexId> seeds = DrawSeeds(graph, random);
  const std::vector<VertexPair> pairs = DrawPairs(graph, random);
  SamplerOptions options = DrawOptions(graph, direction, random);
  const auto sampler = MakeSampler(graph, options);
  ASSERT_NE(sampler, nullptr);
  const SampledSubgraph sample = SampleWithout(*sampler, seeds, pairs);
  const auto plain = sampler->Sample(seeds, 5);
  ASSERT_OK(plain);
  EXPECT_TRUE(Same(SampleWithout(*sampler, seeds, {}), *plain));
  for (std::uint64_t v = 0; v < sample.hop_offsets[1]; ++v) {
    const VertexId vertex = *graph.VertexAt(sample.rows[v]);
    std::vector<Neighbor> expected = DrawnFor(graph, *plain, v);
    std::erase_if(expected, [&](const Neighbor& n) { return IsBetween(pairs, vertex, n.vertex); });
    EXPECT_EQ(DrawnFor(graph, sample, v), expected);
  }
  EXPECT_EQ(sample.edges.size(), options.edge_ids ? sample.neighbors.size() : 0);
  options.threads = 3;
  EXPECT_TRUE(Same(SampleWithout(*MakeSampler(graph, options), seeds, pairs), sample));
  if (direction != Direction::kIn) return;
  const auto other = Sampler::Create(graph, options, std::make_shared<WholeHops>(graph));
  ASSERT_OK(other);
  EXPECT_TRUE(Same(SampleWithout(**other, seeds, pairs), sample));
}

TEST(SamplerLeftOutTest, RandomHistoriesAreSampledWithoutTheEdges) {
  std::mt19937_64 random(testing::TestSeed());
  testing::WithUpdatedGraphs(random, [&](const Graph& graph) {
    const auto snapshot = graph.Snapshot();
    for (const Direction direction : WalkableDirections(*snapshot)) {
      for (int round = 0; round < 4; ++round) {
        ExpectWholeHops(*snapshot, direction, random);
        ExpectSomeNeighbors(*snapshot, direction, random);
      }
    }
  });
}

/// Many chunks of vertices, with ends of pairs and others.
TEST(SamplerLeftOutTest, LargeSamplesAreTheSameWithAnyThreads) {
  std::mt19937_64 random(testing::TestSeed());
  const auto built = testing::Build(testing::RandomInput(4000, 30000, true, random()),
                                    testing::RandomPartitions(3));
  ASSERT_NE(built, nullptr);
  const GraphSnapshot& graph = *built->graph;
  std::vector<VertexPair> pairs;
  std::vector<VertexId> seeds;
  for (VertexId v = 0; v < 900; ++v) {
    const auto list = graph.Neighbors(v, Direction::kIn);
    ASSERT_OK(list);
    seeds.push_back(v);
    if (!list->empty()) pairs.push_back({(*list)[random() % list->size()].vertex, v, 0});
  }
  for (const bool weighted : {false, true}) {
    SamplerOptions options = Fanouts({kAllNeighbors, 2});
    options.weighted = weighted;
    const SampledSubgraph sample = SampleWithout(*MakeSampler(graph, options), seeds, pairs);
    const SampledSubgraph plain = SampleWithout(*MakeSampler(graph, options), seeds, {});
    options.threads = 4;
    EXPECT_TRUE(Same(SampleWithout(*MakeSampler(graph, options), seeds, pairs), sample));
    EXPECT_LT(sample.neighbors.size(), plain.neighbors.size());
    for (std::uint64_t v = 0; v < sample.hop_offsets[1]; ++v) {
      const VertexId vertex = *graph.VertexAt(sample.rows[v]);
      std::vector<Neighbor> expected = DrawnFor(graph, plain, v);
      std::erase_if(expected,
                    [&](const Neighbor& n) { return IsBetween(pairs, vertex, n.vertex); });
      EXPECT_EQ(DrawnFor(graph, sample, v), expected);
      if (weighted) continue;
      Sort(expected);
      EXPECT_EQ(expected, ListWithout(graph, vertex, Direction::kIn, pairs));
    }
  }
}

TEST(SamplerLeftOutTest, NothingIsReachedThroughThem) {
  // 1 and 2 are joined by edges of both types and directions; 2 has an edge from 3, 0 from 1.
  GraphInput input = testing::EmptyInput(4);
  input.edge_type_names = {"likes", "liked_by"};
  const auto add = [&](VertexId src, VertexId dst, TypeId type) {
    input.edges.src.push_back(src);
    input.edges.dst.push_back(dst);
    input.edges.type.push_back(type);
  };
  add(1, 2, 0);
  add(1, 2, 0);
  add(2, 1, 0);
  add(2, 1, 1);
  add(3, 2, 0);
  add(1, 0, 0);
  add(1, 1, 0);
  const auto built = testing::Build(std::move(input), testing::RandomPartitions(2));
  ASSERT_NE(built, nullptr);
  for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
    SamplerOptions options = Fanouts({kAllNeighbors, kAllNeighbors, kAllNeighbors});
    options.direction = direction;
    const auto sampler = MakeSampler(*built->graph, options);
    for (const VertexPair pair : {VertexPair{1, 2, 0}, VertexPair{2, 1, 1}}) {
      const SampledSubgraph sample = SampleWithout(*sampler, {1}, {pair});
      std::set<VertexId> found;
      for (const Row row : sample.rows) found.insert(*built->graph->VertexAt(row));
      const bool out = direction != Direction::kIn;
      EXPECT_EQ(found, out ? (std::set<VertexId>{0, 1}) : (std::set<VertexId>{1}));
    }
  }
  // A pair of a vertex with itself leaves out its loops alone.
  const auto sampler = MakeSampler(*built->graph, Fanouts({kAllNeighbors}));
  EXPECT_EQ(SampleWithout(*sampler, {1}, {{1, 1, 0}}).neighbors.size(), 2U);
  EXPECT_EQ(SampleWithout(*sampler, {1}, {}).neighbors.size(), 3U);
}

TEST(SamplerLeftOutTest, EndsThatDoNotExistAreRefused) {
  const auto built = testing::Build(testing::StarInput(5), testing::RandomPartitions(2));
  ASSERT_NE(built, nullptr);
  const auto sampler = MakeSampler(*built->graph, Fanouts({2}));
  SampledSubgraph out;
  for (const VertexPair pair : {VertexPair{0, 6, 0}, VertexPair{-1, 0, 0}}) {
    const std::vector<VertexPair> pairs{{0, 1, 0}, pair};
    EXPECT_STATUS(sampler->SampleInto(std::vector<VertexId>{0}, {}, 5, pairs, out),
                  kInvalidArgument);
    EXPECT_TRUE(out.rows.empty());
  }
  // The next sample does not remember them.
  const auto plain = sampler->Sample(std::vector<VertexId>{0}, 5);
  ASSERT_OK(plain);
  EXPECT_EQ(plain->neighbors.size(), 2U);
}

}  // namespace
}  // namespace rhizome
