#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "cache/feed/link_seeds.h"
#include "cache/feed/minibatch_sampler.h"
#include "index/chi_square.h"
#include "rhizome/loader.h"
#include "rhizome/sampler.h"
#include "testing/planted_graph.h"
#include "testing/test_store.h"

// Tests of minibatches for learning edges: degrees without the edges of pairs against counts over
// the lists of Graph; loaders of pairs: epochs, ranks, negatives and what they depend on. The
// graphs have vertex types, edge types, loops, parallel edges, edges in both directions and a
// delta.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

constexpr std::uint64_t kVertices = 400;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
const std::vector<std::string> kTypes = {"user", "item", "shop"};

/// How the graph is stored.
struct Kept {
  Direction directions = Direction::kBoth;
  bool symmetric = false;
};

TypeId TypeOfNumber(std::uint64_t vertex) {
  return vertex % 50 == 7 ? TypeId{2} : static_cast<TypeId>(vertex % 2);
}

class LinkFeedTest : public ::testing::Test {
 protected:
  void SetUp() override { random_.seed(testing::TestSeed()); }

  void Build(const Kept& kept) {
    GraphInput input;
    input.vertex_count = kVertices;
    input.vertex_type_names = kTypes;
    for (std::uint64_t v = 0; v < kVertices; ++v) input.vertex_type.push_back(TypeOfNumber(v));
    input.edge_type_names = {"near", "likes", "liked_by"};
    for (std::uint64_t e = 0; e < 4 * kVertices; ++e) AddEdges(input);
    input.undirected = kept.symmetric;
    std::vector<float> rows(kVertices * 4);
    std::iota(rows.begin(), rows.end(), 0.0F);
    input.arrays.push_back(testing::MakeArray("feat", 4, DataType::kFloat32, rows));
    input.arrays.push_back(
        testing::MakeArray("label", 1, DataType::kInt64, std::vector<std::int64_t>(kVertices, 1)));
    BuildOptions build;
    build.partition.partitions = 3;
    build.directions = kept.directions;
    path_ = folder_ / ("g" + std::to_string(stores_++) + ".rz");
    ASSERT_OK(testing::BuildStore(path_, std::move(input), build));
    ASSERT_NO_FATAL_FAILURE(WriteDelta());
    Open({});
  }

  void Open(const GraphOptions& options) {
    open_.graph.reset();
    open_.store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead).value();
    open_.graph = Graph::Open(std::as_const(*open_.store), options).value();
    graph_ = open_.graph->Snapshot();
  }

  // Many edges have the same ends, in either direction; some are loops.
  void AddEdges(GraphInput& input) {
    const std::uint64_t src = random_() % (random_() % 3 == 0 ? 5 : kVertices);
    const std::uint64_t dst = random_() % 40 == 0 ? src : random_() % kVertices;
    for (std::uint64_t copies = 1 + random_() % 2; copies > 0; --copies) {
      const bool back = random_() % 2 == 0;
      input.edges.src.push_back(static_cast<VertexId>(back ? dst : src));
      input.edges.dst.push_back(static_cast<VertexId>(back ? src : dst));
      input.edges.type.push_back(static_cast<TypeId>(random_() % 3));
      input.edges.weight.push_back(static_cast<float>(random_() % 64) / 4);  // exact sums
    }
  }

  /// Adds vertices and edges, and deletes others.
  void WriteDelta() {
    const auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    WriteBatch batch;
    const std::vector<float> row(4, 1.0F);
    for (std::int64_t v = kVertices; v < static_cast<std::int64_t>(kVertices) + 20; ++v) {
      batch.PutVertex(v, kTypes[TypeOfNumber(static_cast<std::uint64_t>(v))]);
      batch.PutRow(v, "feat", std::span<const float>(row));
      for (int e = 0; e < 3; ++e) {
        const auto to = static_cast<std::int64_t>(random_() % 300);
        batch.PutEdge(v, to, {.type = "near", .weight = 2.25F});
        batch.PutEdge(to, v, {.type = "liked_by", .weight = .5F});
      }
    }
    for (std::int64_t v = 0; v < 60; ++v)  // parallel to edges of the generation
      batch.PutEdge(v % 5, v, {.type = "likes", .weight = 1.5F});
    for (int i = 0; i < 10; ++i)
      batch.DeleteVertex(static_cast<std::int64_t>(300 + random_() % 90));
    ASSERT_OK((*live)->Write(batch, {.sync = false}));
  }

  const GraphSnapshot& graph() const { return *graph_; }

  VertexId DrawVertex() {
    while (true) {
      const auto vertex = static_cast<VertexId>(random_() % graph().vertex_count());
      if (!graph().IsDeleted(vertex)) return vertex;
    }
  }

  /// Random pairs; most are edges.
  std::vector<VertexPair> DrawPairs(std::size_t count, Direction direction) {
    std::vector<VertexPair> pairs;
    while (pairs.size() < count) {
      VertexPair pair{DrawVertex(), DrawVertex(), static_cast<TypeId>(random_() % 3)};
      const auto list = graph().Neighbors(pair.src, direction).value();
      if (!list.empty() && random_() % 4 != 0) pair.dst = list[random_() % list.size()].vertex;
      if (random_() % 2 == 0) std::swap(pair.src, pair.dst);
      pairs.push_back(pair);
    }
    return pairs;
  }

  LoaderOptions PairOptions(std::size_t pairs) {
    LoaderOptions options;
    options.sampler.fanouts = {3, 2};
    options.sampler.seed = random_();
    options.features = "feat";
    options.pairs = DrawPairs(pairs, Direction::kOut);
    options.batch_size = 16;
    options.memory_bytes = 8 * kMiB;
    return options;
  }

  /// Returns the minibatches of all epochs, without features.
  std::vector<Minibatch> RunAll(const LoaderOptions& options) {
    std::vector<Minibatch> all;
    const JobControl control;
    const auto loader = Loader::Open(graph(), options, control);
    EXPECT_OK(loader);
    if (!loader) return all;
    while (true) {
      auto minibatch = (*loader)->Next();
      EXPECT_OK(minibatch);
      if (!minibatch) break;
      if (!*minibatch &&
          (*loader)->position() == options.epochs * (*loader)->minibatches_of_epoch())
        break;
      if (!*minibatch) continue;
      (*minibatch)->features = {};
      all.push_back(*std::move(*minibatch));
    }
    return all;
  }

  Status OpenStatus(const LoaderOptions& options) {
    const JobControl control;
    return testing::AsStatus(Loader::Open(graph(), options, control));
  }

  TempDir folder_;
  int stores_ = 0;
  Path path_;
  std::mt19937_64 random_;
  testing::OpenGraph open_;
  std::shared_ptr<const GraphSnapshot> graph_;
};

bool IsBetween(const std::vector<VertexPair>& pairs, VertexId a, VertexId b) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const VertexPair& pair) {
    return (pair.src == a && pair.dst == b) || (pair.src == b && pair.dst == a);
  });
}

std::vector<VertexPair> PairsOf(const Minibatch& m) {
  std::vector<VertexPair> pairs;
  for (const MinibatchPair& pair : m.pairs)
    pairs.push_back({m.vertices[pair.src], m.vertices[pair.dst], pair.type});
  return pairs;
}

/// Expects degrees to count the edges that are walked, except the edges between ends of pairs.
void ExpectDegreesWithout(const GraphSnapshot& graph, Direction direction, const Minibatch& m,
                          const std::vector<VertexPair>& pairs) {
  for (std::size_t v = 0; v < m.rows.size(); ++v) {
    const VertexId vertex = *graph.VertexAt(m.rows[v]);
    const auto list = graph.Neighbors(vertex, direction);
    ASSERT_OK(list);
    std::uint32_t degree = 0;
    double weights = 0;
    for (const Neighbor& n : *list) {
      if (IsBetween(pairs, vertex, n.vertex)) continue;
      ++degree;
      weights += static_cast<double>(n.weight);
    }
    ASSERT_EQ(m.degrees.at(v), degree) << "vertex " << vertex;
    if (m.weighted_degrees.empty()) continue;
    ASSERT_EQ(m.weighted_degrees[v], static_cast<float>(weights)) << "vertex " << vertex;
  }
}

/// A batch whose seeds are the ends of the pairs.
SeedBatch BatchOf(const std::vector<VertexPair>& pairs) {
  SeedBatch batch{.key = 3, .vertices = {}, .leave_out = true};
  const auto number = [&](VertexId vertex) {
    const auto at = std::find(batch.vertices.begin(), batch.vertices.end(), vertex);
    if (at == batch.vertices.end()) batch.vertices.push_back(vertex);
    return static_cast<std::uint32_t>(
        std::find(batch.vertices.begin(), batch.vertices.end(), vertex) - batch.vertices.begin());
  };
  for (const VertexPair& pair : pairs) {
    const std::uint32_t src = number(pair.src);
    batch.pairs.push_back({src, number(pair.dst), pair.type});
  }
  return batch;
}

TEST_F(LinkFeedTest, DegreesDoNotCountTheEdgesOfPairs) {
  for (const Kept& kept :
       {Kept{}, Kept{.symmetric = true}, Kept{Direction::kIn}, Kept{Direction::kOut}}) {
    ASSERT_NO_FATAL_FAILURE(Build(kept));
    for (const Direction direction : {Direction::kIn, Direction::kOut, Direction::kBoth}) {
      const bool stored =
          kept.symmetric || kept.directions == Direction::kBoth || kept.directions == direction;
      if (!stored) continue;
      for (const bool weighted : {false, true}) {
        MinibatchSamplerOptions options;
        options.degrees = true;
        options.weighted_degrees = weighted;
        options.sampler.fanouts = {kAllNeighbors, 2};
        options.sampler.direction = direction;
        const auto sampler = MinibatchSampler::Create(graph(), options, nullptr);
        ASSERT_OK(sampler);
        const std::vector<VertexPair> pairs = DrawPairs(30, direction);
        SeedBatch batch = BatchOf(pairs);
        const auto without = sampler->Sample(batch);
        ASSERT_OK(without);
        EXPECT_EQ(without->pairs, batch.pairs);
        ExpectDegreesWithout(graph(), direction, *without, pairs);
        for (std::size_t v = 0; v < without->seed_count; ++v)
          EXPECT_EQ(without->NeighborsOf(v).size(), without->degrees[v]);
        batch.leave_out = false;
        const auto whole = sampler->Sample(batch);
        ASSERT_OK(whole);
        ExpectDegreesWithout(graph(), direction, *whole, {});
        EXPECT_LT(without->neighbors.size(), whole->neighbors.size());
      }
    }
  }
}

/// Lists that are read in several parts.
TEST_F(LinkFeedTest, DegreesOfHubsAreRight) {
  constexpr std::uint64_t kSpokes = 150'000;
  GraphInput input;
  input.vertex_count = kSpokes;
  input.vertex_type_names = {"v"};
  input.edge_type_names = {"e"};
  for (VertexId hub = 0; hub < 3; ++hub) {
    for (std::uint64_t v = 3; v < kSpokes; ++v) {
      input.edges.src.push_back(static_cast<VertexId>(v));
      input.edges.dst.push_back(hub);
    }
    for (VertexId copies = 0; copies <= hub; ++copies) {
      input.edges.src.push_back(hub);
      input.edges.dst.push_back((hub + 1) % 3);
    }
  }
  ASSERT_OK(testing::BuildStore(folder_ / "hubs.rz", std::move(input), {}));
  open_ = testing::OpenStoreGraph(folder_ / "hubs.rz").value();
  graph_ = open_.graph->Snapshot();
  const std::vector<VertexPair> pairs{{0, 1, 0}, {2, 1, 0}, {2, 0, 0}, {10, 0, 0}, {0, 0, 0}};
  for (const Direction direction : {Direction::kIn, Direction::kBoth}) {
    MinibatchSamplerOptions options;
    options.degrees = true;
    options.sampler.fanouts = {2};
    options.sampler.direction = direction;
    const auto sampler = MinibatchSampler::Create(graph(), options, nullptr);
    ASSERT_OK(sampler);
    const auto minibatch = sampler->Sample(BatchOf(pairs));
    ASSERT_OK(minibatch);
    ExpectDegreesWithout(graph(), direction, *minibatch, pairs);
  }
}

/// All that two loaders must have in common.
auto KeyOf(const Minibatch& m) {
  return std::tie(m.epoch, m.number, m.tag, m.seed_count, m.rows, m.vertices, m.hop_offsets,
                  m.offsets, m.neighbors, m.types, m.weights, m.degrees, m.pairs, m.negatives);
}

void ExpectSame(const std::vector<Minibatch>& a, const std::vector<Minibatch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(KeyOf(a[i]) == KeyOf(b[i])) << i;
}

/// Expects seeds in order of first use: ends of pairs, then negatives of both sides.
void ExpectSeedOrder(const Minibatch& m) {
  std::vector<std::uint32_t> used;
  for (const MinibatchPair& pair : m.pairs) used.insert(used.end(), {pair.src, pair.dst});
  for (const auto& side : m.negatives)
    for (const MinibatchNegatives& negatives : side)
      used.insert(used.end(), negatives.vertices.begin(), negatives.vertices.end());
  std::uint32_t next = 0;
  for (const std::uint32_t seed : used) {
    ASSERT_LE(seed, next);
    next += seed == next ? 1 : 0;
  }
  EXPECT_EQ(next, m.seed_count);
  const std::set<Row> distinct(m.rows.begin(),
                               m.rows.begin() + static_cast<std::ptrdiff_t>(m.seed_count));
  EXPECT_EQ(distinct.size(), m.seed_count);
}

TEST_F(LinkFeedTest, AnEpochVisitsEachPairOnce) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  LoaderOptions options = PairOptions(100);
  options.pairs.push_back(options.pairs.front());  // repeated
  options.epochs = 2;
  const auto sampler = Sampler::Create(graph(), options.sampler);
  ASSERT_OK(sampler);
  const auto key = [](const VertexPair& pair) { return std::tuple(pair.src, pair.dst, pair.type); };
  std::map<std::uint64_t, std::vector<std::tuple<VertexId, VertexId, TypeId>>> seen;
  std::vector<std::tuple<VertexId, VertexId, TypeId>> all;
  for (const VertexPair& pair : options.pairs) all.push_back(key(pair));
  for (const Minibatch& m : RunAll(options)) {
    ExpectSeedOrder(m);
    EXPECT_TRUE(m.negatives[0].empty() && m.negatives[1].empty());
    EXPECT_EQ(m.pairs.size(), m.number < 6 ? 16U : 5U);
    const std::vector<VertexPair> pairs = PairsOf(m);
    for (const VertexPair& pair : pairs) seen[m.epoch].push_back(key(pair));
    SampledSubgraph sample;
    const std::vector<VertexId> seeds(
        m.vertices.begin(), m.vertices.begin() + static_cast<std::ptrdiff_t>(m.seed_count));
    ASSERT_OK((*sampler)->SampleInto(seeds, {}, m.tag, pairs, sample));
    EXPECT_EQ(m.rows, sample.rows);
    EXPECT_TRUE(std::equal(m.neighbors.begin(), m.neighbors.end(), sample.neighbors.begin(),
                           sample.neighbors.end()));
  }
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_NE(seen[0], seen[1]);  // shuffled
  std::sort(all.begin(), all.end());
  for (auto& [epoch, pairs] : seen) {
    std::sort(pairs.begin(), pairs.end());
    EXPECT_EQ(pairs, all) << "epoch " << epoch;
  }
  options.epochs = 1;
  options.shuffle = false;
  options.drop_last = true;
  std::vector<VertexPair> in_order;
  for (const Minibatch& m : RunAll(options))
    for (const VertexPair& pair : PairsOf(m)) in_order.push_back(pair);
  options.pairs.resize(96);
  EXPECT_EQ(in_order, options.pairs);
}

TEST_F(LinkFeedTest, SeedEdgesCanBeKept) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  LoaderOptions options = PairOptions(60);
  options.sampler.fanouts = {kAllNeighbors};
  options.sampler.direction = Direction::kBoth;
  options.degrees = true;
  const auto is_leak = [](const Minibatch& m) {
    for (const MinibatchPair& pair : m.pairs) {
      const auto list = m.NeighborsOf(pair.src);
      if (std::find(list.begin(), list.end(), pair.dst) != list.end()) return true;
    }
    return false;
  };
  for (const Minibatch& m : RunAll(options)) {
    EXPECT_FALSE(is_leak(m));
    ExpectDegreesWithout(graph(), Direction::kBoth, m, PairsOf(m));
  }
  options.keep_seed_edges = true;
  for (const Minibatch& m : RunAll(options)) {
    EXPECT_TRUE(is_leak(m));
    ExpectDegreesWithout(graph(), Direction::kBoth, m, {});
  }
}

/// Expects K negatives for each pair, of the type of the end that they replace, by its rank.
void ExpectNegatives(const GraphSnapshot& graph, const Minibatch& m, std::uint64_t k) {
  for (std::size_t side = 0; side < 2; ++side) {
    std::map<TypeId, std::vector<VertexId>> ends;
    for (const VertexPair& pair : PairsOf(m)) {
      const VertexId end = side == 0 ? pair.src : pair.dst;
      ends[*graph.TypeOf(end)].push_back(end);
    }
    ASSERT_EQ(m.negatives[side].size(), ends.size());
    auto next = ends.begin();
    for (const MinibatchNegatives& negatives : m.negatives[side]) {
      const auto& [type, replaced] = *next++;
      ASSERT_EQ(negatives.type, type);
      ASSERT_EQ(negatives.vertices.size(), replaced.size() * k);
      for (std::size_t i = 0; i < negatives.vertices.size(); ++i) {
        const VertexId vertex = m.vertices[negatives.vertices[i]];
        EXPECT_FALSE(graph.IsDeleted(vertex));
        EXPECT_EQ(*graph.TypeOf(vertex), type);
        EXPECT_NE(vertex, replaced[i / k]);
      }
    }
  }
}

TEST_F(LinkFeedTest, NegativesHaveTheTypeOfTheEndThatTheyReplace) {
  for (const char* sources : {"uniform", "degree^.5", "uniform:.25,degree^.75:.5,in-batch"}) {
    ASSERT_NO_FATAL_FAILURE(Build({}));
    LoaderOptions options = PairOptions(70);
    // With in-batch, the only vertex of its type may be the end itself.
    if (std::string_view(sources).find("in-batch") != std::string_view::npos)
      std::erase_if(options.pairs, [&](const VertexPair& pair) {
        return *graph().TypeOf(pair.src) == 2 || *graph().TypeOf(pair.dst) == 2;
      });
    options.negatives = 3;
    options.negative_sources = sources;
    options.epochs = 2;
    std::set<std::vector<VertexId>> drawn;
    const std::vector<Minibatch> minibatches = RunAll(options);
    for (const Minibatch& m : minibatches) {
      ExpectSeedOrder(m);
      ASSERT_NO_FATAL_FAILURE(ExpectNegatives(graph(), m, 3));
      for (const auto& side : m.negatives) {
        std::vector<VertexId> vertices;
        for (const MinibatchNegatives& negatives : side)
          for (const std::uint32_t local : negatives.vertices)
            vertices.push_back(m.vertices[local]);
        drawn.insert(vertices);
      }
    }
    EXPECT_EQ(drawn.size(), 2 * minibatches.size());  // others in each minibatch and side
  }
}

TEST_F(LinkFeedTest, UniformNegativesAreUniform) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  LoaderOptions options = PairOptions(0);
  const VertexPair pair{7, 1, 0};  // a shop and an item
  options.pairs = {pair};
  options.negatives = 40;
  options.epochs = 60;
  std::array<std::map<VertexId, double>, 2> counts;
  for (const Minibatch& m : RunAll(options))
    for (std::size_t side = 0; side < 2; ++side)
      for (const std::uint32_t local : m.negatives[side].front().vertices)
        ++counts[side][m.vertices[local]];
  for (std::size_t side = 0; side < 2; ++side) {
    const VertexId end = side == 0 ? pair.src : pair.dst;
    std::size_t others = 0;
    double statistic = 0;
    const std::vector<std::uint64_t> live = graph().live_vertices_by_type();
    const double expected = 40.0 * 60 / static_cast<double>(live[*graph().TypeOf(end)] - 1);
    for (VertexId v = 0; v < static_cast<VertexId>(graph().vertex_count()); ++v) {
      if (graph().IsDeleted(v) || v == end || *graph().TypeOf(v) != *graph().TypeOf(end)) continue;
      const double difference = counts[side][v] - expected;
      statistic += difference * difference / expected;
      ++others;
    }
    EXPECT_LT(statistic, testing::ChiSquareBound(others - 1));
  }
}

TEST_F(LinkFeedTest, MinibatchesDependOnTheOptionsAlone) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  LoaderOptions options = PairOptions(90);
  options.negatives = 2;
  options.negative_sources = "uniform,degree^.5";
  options.degrees = true;
  options.epochs = 2;
  const std::vector<Minibatch> all = RunAll(options);
  ASSERT_EQ(all.size(), 12U);
  LoaderOptions other = options;
  other.feed.superbatch = 3;
  other.memory_bytes = 0;
  other.sampler.threads = 4;
  ExpectSame(RunAll(other), all);
  other.feed.cache = PolicyKind::kLru;
  other.feed.superbatch = 1;
  ExpectSame(RunAll(other), all);
  // Resumed, within an epoch and at its beginning.
  for (const std::uint64_t first : {4U, 6U, 11U}) {
    other.first = first;
    const auto rest = RunAll(other);
    ASSERT_EQ(rest.size(), all.size() - first);
    for (std::size_t i = 0; i < rest.size(); ++i)
      EXPECT_TRUE(KeyOf(rest[i]) == KeyOf(all[first + i])) << first << " " << i;
  }
  // Lists on disk.
  Open({.topology = TopologyPlace::kDirect, .list_cache_bytes = kMiB});
  options.memory_bytes = 64 * kMiB;
  ExpectSame(RunAll(options), all);
}

TEST_F(LinkFeedTest, RanksDivideThePairs) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  LoaderOptions options = PairOptions(96);
  options.negatives = 1;
  const std::vector<Minibatch> all = RunAll(options);
  options.ranks = 3;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    options.rank = rank;
    const auto part = RunAll(options);
    ASSERT_EQ(part.size(), 2U);
    for (std::size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i].pairs, all[i * 3 + rank].pairs);
      EXPECT_EQ(part[i].negatives, all[i * 3 + rank].negatives);
      EXPECT_EQ(part[i].rows, all[i * 3 + rank].rows);
    }
  }
}

TEST_F(LinkFeedTest, BadPairsAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Build({}));
  const LoaderOptions options = PairOptions(20);
  const auto message = [&](const auto& change) {
    LoaderOptions changed = options;
    change(changed);
    const Status status = OpenStatus(changed);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.ToString();
  };
  VertexId deleted = 300;
  while (!graph().IsDeleted(deleted)) ++deleted;
  EXPECT_OK(OpenStatus(options));
  EXPECT_THAT(message([](auto& o) { o.seeds = {1}; }), HasSubstr("`seeds`, `split`"));
  EXPECT_THAT(message([](auto& o) { o.split = "split"; }), HasSubstr("`pairs`"));
  EXPECT_THAT(message([](auto& o) { o.pairs.clear(); }), HasSubstr("`pairs`"));
  EXPECT_THAT(message([](auto& o) { o.labels = "label"; }), HasSubstr("`labels`"));
  EXPECT_THAT(message([](auto& o) { o.pairs[4].dst = 10000; }),
              HasSubstr("pair 4 has the end 10000"));
  EXPECT_THAT(message([](auto& o) { o.pairs[4].src = -1; }), HasSubstr("pair 4 has the end -1"));
  EXPECT_THAT(message([&](auto& o) { o.pairs[9].src = deleted; }), HasSubstr("was deleted"));
  EXPECT_THAT(message([](auto& o) { o.pairs[3].type = 3; }), HasSubstr("pair 3 has edge type 3"));
  EXPECT_THAT(message([](auto& o) {
                o.seeds = {1};
                o.pairs.clear();
                o.negatives = 1;
              }),
              HasSubstr("`negatives`"));
  const auto with_source = [&](const char* sources) {
    return message([&](auto& o) {
      o.negatives = 1;
      o.negative_sources = sources;
    });
  };
  EXPECT_THAT(with_source("unifrom"), HasSubstr("`negative_sources`"));
  EXPECT_THAT(with_source("resident:.5,uniform"), HasSubstr("one partition"));
  EXPECT_THAT(message([](auto& o) { o.negatives = std::uint64_t{1} << 40; }),
              HasSubstr("`negatives`"));
}

TEST_F(LinkFeedTest, AnEndThatNothingCanReplaceIsRefused) {
  GraphInput input;
  input.vertex_count = 6;
  input.vertex_type_names = {"user", "shop"};
  input.vertex_type = {0, 0, 0, 0, 0, 1};
  input.edge_type_names = {"buys"};
  input.edges.src = {0, 1};
  input.edges.dst = {5, 5};
  input.arrays.push_back(
      testing::MakeArray("feat", 1, DataType::kFloat32, std::vector<float>(6, 1.0F)));
  ASSERT_OK(testing::BuildStore(folder_ / "one.rz", std::move(input), {}));
  open_ = testing::OpenStoreGraph(folder_ / "one.rz").value();
  graph_ = open_.graph->Snapshot();
  LoaderOptions options;
  options.sampler.fanouts = {2};
  options.features = "feat";
  options.pairs = {{0, 1, 0}, {0, 5, 0}};
  EXPECT_OK(OpenStatus(options));
  options.negatives = 1;
  const Status status = OpenStatus(options);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("the destination of pair 1"));
  EXPECT_THAT(status.ToString(), HasSubstr("'shop'"));
  options.pairs.pop_back();
  EXPECT_OK(OpenStatus(options));
}

}  // namespace
}  // namespace rhizome
