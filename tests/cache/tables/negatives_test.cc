#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "cache/tables/epoch_order.h"
#include "cache/tables/graph_edges.h"
#include "cache/tables/negative_pools.h"
#include "cache/tables/negative_sources.h"
#include "cache/tables/partition_tour.h"
#include "cache/tables/table_order.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_scan.h"
#include "testing/test_store.h"

// Tests of edges by position, of the rows of a table, and of negatives, on random graphs with
// vertex types, edge types and a delta that adds and deletes vertices and edges. EdgeScan and
// chi-square tests are the oracles.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

const std::vector<std::string> kEnds = {"person", "place", "thing"};

struct DrawnGraph {
  std::uint32_t partitions = 4;
  OrderKind order = OrderKind::kPds;
  Direction directions = Direction::kBoth;
  bool symmetric = false;
  std::uint64_t vertices = 300;
};

class NegativesTest : public ::testing::Test {
 protected:
  void SetUp() override { random_.seed(testing::TestSeed()); }

  /// Builds a store and writes a delta. Vertex v has the type of v, and about one in twenty is of
  /// type 2.
  void Build(const DrawnGraph& drawn) {
    GraphInput input;
    input.vertex_count = drawn.vertices;
    for (std::uint64_t v = 0; v < drawn.vertices; ++v)
      input.vertex_type.push_back(v % 20 == 0 ? 2 : static_cast<TypeId>(random_() % 2));
    for (std::uint64_t e = 0; e < 5 * drawn.vertices; ++e) {
      const std::uint64_t src = random_() % drawn.vertices;
      const bool near = random_() % 3 != 0;
      const std::uint64_t dst = near ? (src + 1 + random_() % 20) % drawn.vertices
                                     : random_() % (1 + drawn.vertices / 10);
      input.edges.src.push_back(static_cast<VertexId>(src));
      input.edges.dst.push_back(static_cast<VertexId>(dst));
      input.edges.type.push_back(static_cast<TypeId>(random_() % 3));
    }
    input.vertex_type_names = kEnds;
    input.edge_type_names = {"a", "b", "c"};
    input.undirected = drawn.symmetric;
    BuildOptions build;
    build.partition.partitions = drawn.partitions;
    build.order = drawn.order;
    build.directions = drawn.directions;
    const Path path = folder_ / ("g" + std::to_string(stores_++) + ".rz");
    ASSERT_OK(testing::BuildStore(path, std::move(input), build));
    ASSERT_NO_FATAL_FAILURE(WriteDelta(path, drawn));
    open_ = testing::OpenStoreGraph(path).value();
    graph_ = open_.graph->Snapshot();
  }

  void WriteDelta(const Path& path, const DrawnGraph& drawn) {
    const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto live = Graph::Open(**store);
    ASSERT_OK(live);
    WriteBatch batch;
    const auto any = [&] { return static_cast<std::int64_t>(random_() % drawn.vertices); };
    for (int i = 0; i < 20; ++i) {
      const auto id = static_cast<std::int64_t>(drawn.vertices) + i;
      batch.PutVertex(id, kEnds[static_cast<std::size_t>(i) % 3]);
      batch.PutEdge(any(), id, {.type = "a"});
      batch.PutEdge(id, any(), {.type = "b"});
    }
    for (int i = 0; i < 10; ++i) batch.DeleteVertex(any());
    ASSERT_OK((*live)->Write(batch, {.sync = false}));
    WriteBatch edges;
    const auto scan = EdgeScan::Open(**live);
    ASSERT_OK(scan);
    std::vector<EdgeScan::Entry> all;
    auto walk = EdgeScan::Open(**live).value();
    while (const auto entry = *walk.Next()) all.push_back(*entry);
    for (int i = 0; i < 40; ++i) {
      const EdgeScan::Entry& edge = all[random_() % all.size()];
      const char* const types[] = {"a", "b", "c"};
      edges.DeleteEdge(edge.src, edge.dst, types[edge.type]);
    }
    ASSERT_OK((*live)->Write(edges, {.sync = false}));
  }

  std::vector<std::uint64_t> DegreesOfAll() const {
    std::vector<std::uint64_t> degrees(graph_->vertex_count());
    for (std::uint64_t v = 0; v < degrees.size(); ++v) {
      if (!graph_->IsDeleted(static_cast<VertexId>(v)))
        degrees[v] = graph_->Degree(static_cast<VertexId>(v), Direction::kBoth).value();
    }
    return degrees;
  }

  TypeId TypeOf(std::uint64_t vertex) const {
    return graph_->TypeOf(static_cast<VertexId>(vertex)).value();
  }

  /// Compares the frequencies of vertices with weights that are proportional to probabilities.
  static void ExpectDrawn(const std::vector<VertexId>& drawn, const std::vector<double>& weights) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> counts(weights.size());
    for (const VertexId vertex : drawn) ++counts[static_cast<std::size_t>(vertex)];
    double chi_square = 0;
    double freedom = -1;
    for (std::size_t v = 0; v < weights.size(); ++v) {
      if (weights[v] == 0) {
        ASSERT_EQ(counts[v], 0) << v;
        continue;
      }
      const double expected = static_cast<double>(drawn.size()) * weights[v] / sum;
      ASSERT_GT(expected, 5) << "too few draws for this test";
      chi_square += std::pow(counts[v] - expected, 2) / expected;
      ++freedom;
    }
    if (freedom == 0) return;  // one vertex, which all draws are
    // Wilson and Hilferty: the cube root is close to normal. 5 deviations: 3 in 10 million.
    const double deviations =
        (std::cbrt(chi_square / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
    EXPECT_LT(deviations, 5);
  }

  TempDir folder_;
  int stores_ = 0;
  std::mt19937_64 random_;
  testing::OpenGraph open_;
  std::shared_ptr<const GraphSnapshot> graph_;
};

std::multiset<std::tuple<VertexId, VertexId, TypeId>> AsSet(const std::vector<VertexPair>& edges) {
  std::multiset<std::tuple<VertexId, VertexId, TypeId>> set;
  for (const VertexPair& edge : edges) set.insert({edge.src, edge.dst, edge.type});
  return set;
}

TEST_F(NegativesTest, GroupsHaveTheEdgesOfAScan) {
  const std::vector<DrawnGraph> graphs = {{},
                                          {.partitions = 1},
                                          {.order = OrderKind::kRandom},
                                          {.directions = Direction::kOut},
                                          {.directions = Direction::kIn},
                                          {.symmetric = true}};
  for (const DrawnGraph& drawn : graphs) {
    ASSERT_NO_FATAL_FAILURE(Build(drawn));
    std::vector<VertexPair> expected;
    auto scan = EdgeScan::Open(*graph_).value();
    while (const auto entry = *scan.Next())
      expected.push_back({entry->src, entry->dst, entry->type});
    GraphEdges edges = GraphEdges::Of(graph_).value();
    std::vector<VertexPair> all;
    std::vector<VertexPair> read;
    for (std::uint32_t group = 0; group < edges.counts().size(); ++group) {
      std::vector<std::uint64_t> positions(edges.counts()[group]);
      std::iota(positions.begin(), positions.end(), 0);
      std::shuffle(positions.begin(), positions.end(), random_);
      ASSERT_OK(edges.Read(group, positions, read));
      all.insert(all.end(), read.begin(), read.end());
      // The edges are in the order of the positions.
      std::vector<VertexPair> one;
      for (std::size_t i = 0; i < std::min<std::size_t>(positions.size(), 20); ++i) {
        std::vector<VertexPair> single;
        ASSERT_OK(edges.Read(group, std::vector<std::uint64_t>{positions[i]}, single));
        one.insert(one.end(), single.begin(), single.end());
      }
      EXPECT_TRUE(std::equal(one.begin(), one.end(), read.begin()));
    }
    EXPECT_EQ(AsSet(all), AsSet(expected));
    EXPECT_GT(edges.counts().back(), 0U);
  }
}

TEST_F(NegativesTest, ATableHasARowForEachVertexInTheOrderOfTheTour) {
  Build({.partitions = 6});
  const PartitionTour tour = PartitionTour::Of(*graph_).value();
  const TableOrder order = TableOrder::Of(*graph_, tour.order()).value();
  ASSERT_EQ(order.size(), graph_->vertex_count());
  const std::vector<VertexId> vertices = order.Vertices();
  std::set<VertexId> distinct(vertices.begin(), vertices.end());
  EXPECT_EQ(distinct.size(), graph_->vertex_count());
  for (std::size_t row = 0; row < vertices.size(); ++row)
    EXPECT_EQ(order.RowOf(vertices[row]), static_cast<Row>(row));
  // The rows of the vertices that a partition is the first to have are consecutive.
  std::set<Row> before;
  for (const std::uint32_t p : tour.order()) {
    std::set<Row> rows(before);
    const Adjacency& partition = graph_->partition(p);
    for (LocalId local = 0; local < partition.vertex_count(); ++local)
      rows.insert(order.RowOf(graph_->order().VertexAt(partition.RowOf(local))));
    EXPECT_EQ(*rows.rbegin(), static_cast<Row>(rows.size()) - 1);
    before = rows;
  }
}

TEST_F(NegativesTest, SharedVerticesAreCountedAsByComparingPartitions) {
  Build({.partitions = 5});
  const std::vector<std::uint64_t> shared = CountSharedVertices(*graph_).value();
  std::vector<std::set<Row>> rows(5);
  for (std::uint32_t p = 0; p < 5; ++p) {
    const Adjacency& partition = graph_->partition(p);
    for (LocalId local = 0; local < partition.vertex_count(); ++local) {
      const bool has_edges =
          (partition.has(Direction::kOut) && partition.Entries(local, Direction::kOut).count > 0) ||
          (partition.has(Direction::kIn) && partition.Entries(local, Direction::kIn).count > 0);
      if (has_edges) rows[p].insert(partition.RowOf(local));
    }
  }
  std::uint64_t sum = 0;
  for (std::uint32_t a = 0; a < 5; ++a) {
    for (std::uint32_t b = 0; b < 5; ++b) {
      std::vector<Row> both;
      std::ranges::set_intersection(rows[a], rows[b], std::back_inserter(both));
      EXPECT_EQ(shared[a * 5 + b], a == b ? 0 : both.size()) << a << " " << b;
      sum += shared[a * 5 + b];
    }
  }
  EXPECT_GT(sum, 0U);
}

TEST_F(NegativesTest, SourcesDrawVerticesOfTheTypeWithTheirProbabilities) {
  for (const OrderKind kind : {OrderKind::kPds, OrderKind::kRandom}) {
    ASSERT_NO_FATAL_FAILURE(Build({.order = kind, .vertices = 120}));
    NegativeVertices vertices = NegativeVertices::Of(graph_).value();
    const std::vector<std::uint64_t> degrees = DegreesOfAll();
    std::uint64_t stream = 0;
    for (TypeId type = 0; type < 3; ++type) {
      const auto draw = [&](const NegativeShare& share, std::uint32_t group) {
        CounterRandom random({.seed = testing::TestSeed(), .batch = ++stream});
        std::vector<VertexId> drawn;
        EXPECT_OK(vertices.Draw(share, group, type, 12000, random, drawn));
        EXPECT_EQ(drawn.size(), 12000U);
        return drawn;
      };
      std::vector<double> uniform(graph_->vertex_count());
      std::vector<double> by_degree(uniform);
      for (std::size_t v = 0; v < uniform.size(); ++v) {
        const bool alive = !graph_->IsDeleted(static_cast<VertexId>(v)) && TypeOf(v) == type;
        uniform[v] = alive ? 1 : 0;
        by_degree[v] = alive && degrees[v] > 0 ? std::pow(degrees[v], .6) : 0;
      }
      EXPECT_EQ(vertices.count(type), std::accumulate(uniform.begin(), uniform.end(), 0.0));
      ExpectDrawn(draw({.source = NegativeSource::kUniform}, 0), uniform);
      ExpectDrawn(draw({.source = NegativeSource::kDegree, .alpha = .6}, 0), by_degree);
      // Resident: of the partition; of the delta's group it is uniform.
      ExpectDrawn(draw({.source = NegativeSource::kResident}, 4), uniform);
      for (std::uint32_t p = 0; p < 4; ++p) {
        std::vector<double> resident(uniform.size());
        const Adjacency& partition = graph_->partition(p);
        for (LocalId local = 0; local < partition.vertex_count(); ++local) {
          const auto v = static_cast<std::size_t>(graph_->order().VertexAt(partition.RowOf(local)));
          resident[v] = uniform[v];
        }
        const bool none = std::ranges::all_of(resident, [](double weight) { return weight == 0; });
        ExpectDrawn(draw({.source = NegativeSource::kResident}, p), none ? uniform : resident);
      }
    }
  }
}

TEST_F(NegativesTest, PoolsAreSharedByBatchesAndRenewed) {
  ASSERT_NO_FATAL_FAILURE(Build({.vertices = 4000}));
  NegativeVertices vertices = NegativeVertices::Of(graph_).value();
  NegativeOptions options;
  options.negatives = 40;
  options.seed = random_();
  options.mixture = ParseNegativeMixture("uniform").value();
  NegativePools pools(vertices, options);
  const std::uint64_t batches = 200;
  const auto place = [&](std::uint64_t number) {
    return BatchPlace{.batch = {.group = 0, .index = number, .group_batches = batches},
                      .number = number,
                      .batches = batches,
                      .epoch = 3};
  };
  std::vector<VertexId> drawn;
  std::set<VertexId> all;
  std::map<std::uint64_t, std::set<VertexId>> by_run;
  // Half of the vertices of the type in pools of 160.
  const auto runs =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(vertices.count(0)) / 2 / 160));
  ASSERT_GT(runs, 3U);
  for (std::uint64_t b = 0; b < batches; ++b) {
    for (const std::uint32_t side : {0U, 1U}) {
      ASSERT_OK(pools.Draw(place(b), side, 0, {}, drawn));
      ASSERT_EQ(drawn.size(), 40U);
      by_run[b * runs / batches].insert(drawn.begin(), drawn.end());
    }
  }
  ASSERT_EQ(by_run.size(), runs);
  for (const auto& [run, seen] : by_run) {
    EXPECT_LE(seen.size(), 160U);
    EXPECT_GT(seen.size(), 130U);  // most places of the pool are drawn, some hold equal vertices
    all.insert(seen.begin(), seen.end());
  }
  EXPECT_GT(all.size(), 3 * 160U);
  // The draws of a batch do not depend on earlier calls.
  NegativePools again(vertices, options);
  std::vector<VertexId> later;
  ASSERT_OK(again.Draw(place(batches - 1), 1, 0, {}, later));
  EXPECT_EQ(later, drawn);
  ASSERT_OK(again.Draw(place(batches - 1), 0, 0, {}, later));
  EXPECT_NE(later, drawn);
  NegativePools other(vertices, {.negatives = 40, .mixture = options.mixture, .seed = 77});
  ASSERT_OK(other.Draw(place(batches - 1), 1, 0, {}, later));
  EXPECT_NE(later, drawn);
}

TEST_F(NegativesTest, PoolsAreUniformOverEpochsByAChiSquareTest) {
  ASSERT_NO_FATAL_FAILURE(Build({.vertices = 100}));
  NegativeVertices vertices = NegativeVertices::Of(graph_).value();
  NegativePools pools(
      vertices,
      {.negatives = 5, .mixture = ParseNegativeMixture("uniform").value(), .seed = random_()});
  std::vector<VertexId> drawn;
  std::vector<VertexId> all;
  // One batch of each epoch, so that draws are independent except that they are without repetition.
  for (std::uint64_t epoch = 0; epoch < 3000; ++epoch) {
    ASSERT_OK(
        pools.Draw({.batch = {.group_batches = 1}, .batches = 1, .epoch = epoch}, 0, 1, {}, drawn));
    all.push_back(drawn[epoch % 5]);
  }
  std::vector<double> uniform(graph_->vertex_count());
  for (std::size_t v = 0; v < uniform.size(); ++v)
    uniform[v] = !graph_->IsDeleted(static_cast<VertexId>(v)) && TypeOf(v) == 1 ? 1 : 0;
  ExpectDrawn(all, uniform);
}

TEST_F(NegativesTest, MixturesHaveTheirSharesAndTypes) {
  ASSERT_NO_FATAL_FAILURE(Build({.vertices = 2000}));
  NegativeVertices vertices = NegativeVertices::Of(graph_).value();
  NegativeOptions options;
  options.negatives = 101;
  options.mixture = ParseNegativeMixture("resident:.3,in-batch:.2,uniform").value();
  NegativePools pools(vertices, options);
  const std::vector<VertexId> ends = {7};
  std::vector<VertexId> drawn;
  std::set<VertexId> resident;
  const Adjacency& partition = graph_->partition(2);
  for (LocalId local = 0; local < partition.vertex_count(); ++local)
    resident.insert(graph_->order().VertexAt(partition.RowOf(local)));
  for (TypeId type = 0; type < 2; ++type) {
    ASSERT_OK(pools.Draw({.batch = {.group = 2, .group_batches = 5}, .batches = 20}, 0, type, ends,
                         drawn));
    ASSERT_EQ(drawn.size(), 101U);
    for (std::size_t i = 0; i < 30; ++i) EXPECT_TRUE(resident.contains(drawn[i]));
    EXPECT_EQ(std::count(drawn.begin() + 30, drawn.begin() + 51, VertexId{7}), 21);
    for (std::size_t i = 0; i < drawn.size(); ++i)
      EXPECT_TRUE((i >= 30 && i < 51) || TypeOf(static_cast<std::uint64_t>(drawn[i])) == type);
  }
  EXPECT_STATUS(pools.Draw({.batch = {.group_batches = 1}, .batches = 1}, 0, 0, {}, drawn),
                kInvalidArgument);
  EXPECT_STATUS(pools.Draw({.batch = {.group_batches = 1}, .batches = 1}, 0, 9, ends, drawn),
                kInvalidArgument);
}

TEST(NegativeMixtureTest, IsParsed) {
  const NegativeMixture both = ParseNegativeMixture("resident:.5,uniform:.5").value();
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].source, NegativeSource::kResident);
  EXPECT_EQ(both[1].share, .5);
  const NegativeMixture rest = ParseNegativeMixture("degree^.75,in-batch:0.2,uniform").value();
  EXPECT_EQ(rest[0].alpha, .75);
  EXPECT_DOUBLE_EQ(rest[0].share, .4);
  EXPECT_DOUBLE_EQ(rest[2].share, .4);
  EXPECT_EQ(ParseNegativeMixture("uniform").value()[0].share, 1);
  for (const char* const bad :
       {"", "uniform:.5", "uniform:.7,resident:.7", "uniform,uniform", "nearest", "degree^2",
        "uniform^.5", "uniform:x", "uniform:-1", "degree^", "uniform,", "uniform:nan"}) {
    const auto mixture = ParseNegativeMixture(bad);
    SCOPED_TRACE(bad);
    EXPECT_STATUS(mixture, kInvalidArgument);
    EXPECT_THAT(mixture.error().message(), HasSubstr("resident:.5,uniform:.5"));
  }
}

}  // namespace
}  // namespace rhizome
