#include "rhizome/graph.h"

#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/partition/partitioner.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/sampler.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::GraphModel;
using testing::ModelEdge;
using testing::OpenStoreGraph;
using testing::RandomGraph;
using testing::RandomGraphOptions;

constexpr PartitionerKind kPartitioners[] = {PartitionerKind::kRefined, PartitionerKind::kHash2d,
                                             PartitionerKind::kRandom};
constexpr OrderKind kOrders[] = {OrderKind::kPds, OrderKind::kPs, OrderKind::kNatural,
                                 OrderKind::kDegree, OrderKind::kRandom};
constexpr ExternalIdKind kIdKinds[] = {ExternalIdKind::kDense, ExternalIdKind::kInteger,
                                       ExternalIdKind::kString};
constexpr Direction kDirections[] = {Direction::kOut, Direction::kIn, Direction::kBoth};

// 15 rounds cover every pair of partitioner and order. The other options are random.
BuildOptions DrawOptions(std::mt19937_64& rng, std::size_t round) {
  BuildOptions options;
  options.partition.kind = kPartitioners[round % 3];
  options.partition.partitions = 1 + static_cast<std::uint32_t>(rng() % 8);
  options.partition.seed = rng();
  options.order = kOrders[round % 5];
  options.directions = kDirections[rng() % 3];
  return options;
}

GraphInput DrawInput(std::mt19937_64& rng) {
  RandomGraphOptions options;
  options.vertices = 1 + rng() % 50;
  options.edges = rng() % 150;
  options.vertex_types = 1 + static_cast<std::uint32_t>(rng() % 3);
  options.edge_types = rng() % 3 == 0 ? 1 : 1 + static_cast<std::uint32_t>(rng() % 6);
  options.weighted = rng() % 2 == 0;
  options.undirected = rng() % 3 == 0;
  options.id_kind = kIdKinds[rng() % 3];
  return RandomGraph(rng, options);
}

ExternalId IdOf(const GraphInput& input, VertexId vertex) {
  const auto i = static_cast<std::size_t>(vertex);
  if (input.id_kind == ExternalIdKind::kInteger) return input.integer_ids[i];
  if (input.id_kind == ExternalIdKind::kString) return input.string_ids[i];
  return vertex;
}

void ExpectIdsAgree(const Graph& graph, const GraphInput& input) {
  for (VertexId v = 0; v < static_cast<VertexId>(input.vertex_count); ++v) {
    const ExternalId id = IdOf(input, v);
    EXPECT_EQ(*graph.ExternalIdOf(v), id);
    const auto found = graph.Find(id);
    ASSERT_OK(found);
    EXPECT_EQ(*found, v);
    const auto by_text = graph.FindText(ToString(id));
    ASSERT_OK(by_text);
    EXPECT_EQ(*by_text, v);
    EXPECT_EQ(*graph.VertexAt(*graph.RowOf(v)), v);
    EXPECT_EQ(*graph.TypeOf(v),
              input.vertex_type.empty() ? 0 : input.vertex_type[static_cast<std::size_t>(v)]);
  }
  EXPECT_STATUS(graph.Find(std::string("no such vertex")), kNotFound);
}

void ExpectListsAgree(const Graph& graph, const GraphInput& input, Direction kept) {
  const GraphModel model(input);
  for (VertexId v = 0; v < static_cast<VertexId>(input.vertex_count); ++v) {
    for (const Direction direction : kDirections) {
      const auto neighbors = graph.Neighbors(v, direction);
      if (!input.undirected && kept != Direction::kBoth && kept != direction) {
        EXPECT_STATUS(neighbors, kInvalidArgument);
        EXPECT_STATUS(graph.Degree(v, direction), kInvalidArgument);
        continue;
      }
      ASSERT_OK(neighbors);
      EXPECT_EQ(*neighbors, model.Neighbors(v, direction));
      EXPECT_EQ(*graph.Degree(v, direction), neighbors->size());
      for (std::size_t t = 0; t < input.edge_type_names.size(); ++t) {
        const auto type = static_cast<TypeId>(t);
        const auto of_type = graph.NeighborsOfType(v, direction, type);
        ASSERT_OK(of_type);
        EXPECT_EQ(*of_type, model.Neighbors(v, direction, type));
      }
    }
  }
}

// Expects that each directed edge is in exactly one partition, and that its type can be found by
// its id.
void ExpectEdgesOnce(const GraphSnapshot& graph, const GraphInput& input, Direction kept) {
  std::vector<ModelEdge> expected = GraphModel(input).edges();
  EXPECT_EQ(graph.generation_edge_count(), expected.size());
  const bool by_target = !input.undirected && kept == Direction::kIn;
  const Direction lists = by_target ? Direction::kIn : Direction::kOut;
  std::vector<ModelEdge> found;
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const Adjacency& part = graph.partition(p);
    for (LocalId local = 0; local < part.vertex_count(); ++local) {
      const auto list = part.Neighbors(local, lists);
      for (std::size_t i = 0; i < list.neighbors.size(); ++i) {
        const auto type = graph.TypeOfEdge({static_cast<PartitionId>(p), list.first + i});
        ASSERT_OK(type);
        const VertexId a = *graph.VertexAt(part.RowOf(local));
        const VertexId b = *graph.VertexAt(part.RowOf(list.neighbors[i]));
        found.push_back(
            {by_target ? b : a, by_target ? a : b, *type, part.Weight(lists, list.first + i)});
      }
    }
    EXPECT_STATUS(graph.TypeOfEdge({static_cast<PartitionId>(p), part.edge_count()}),
                  kInvalidArgument);
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
}

TEST(GraphTest, EveryQueryAgreesWithTheModel) {
  std::mt19937_64 rng(testing::TestSeed());
  for (std::size_t round = 0; round < 15 && !HasFailure(); ++round) {
    const GraphInput input = DrawInput(rng);
    const BuildOptions options = DrawOptions(rng, round);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": " << PartitionerName(options.partition.kind) << " "
                 << OrderName(options.order) << " directions "
                 << static_cast<int>(options.directions));
    const testing::TempDir folder;
    ASSERT_OK(BuildStore(folder / "g", input, options));
    const auto open = OpenStoreGraph(folder / "g");
    ASSERT_OK(open);
    const GraphSnapshot& graph = *open->graph;
    EXPECT_EQ(graph.vertex_count(), input.vertex_count);
    ExpectIdsAgree(graph, input);
    ExpectListsAgree(graph, input, options.directions);
    ExpectEdgesOnce(graph, input, options.directions);
  }
}

class GraphErrorsTest : public ::testing::Test {
 protected:
  GraphErrorsTest() {
    std::mt19937_64 rng(1);
    BuildOptions options;
    options.directions = Direction::kOut;
    EXPECT_OK(BuildStore(folder_ / "g", RandomGraph(rng, {.vertices = 9, .edges = 20}), options));
    auto open = OpenStoreGraph(folder_ / "g");
    EXPECT_OK(open);
    open_ = *std::move(open);
  }
  const testing::TempDir folder_;
  testing::OpenGraph open_;
};

// A graph that was opened by its path answers as one whose store the caller holds.
TEST(OpenedByPathTest, WritesReadsAndSamplesByExternalIds) {
  const testing::TempDir dir;
  const Path path = dir.path() / "g.rz";
  {
    GraphInput input;
    input.vertex_count = 3;
    input.vertex_type_names = {"animal"};
    input.edge_type_names = {"eats"};
    input.id_kind = ExternalIdKind::kString;
    input.string_ids = {"dog", "wolf", "cat"};
    input.edges.src = {0, 2};
    input.edges.dst = {1, 0};
    BuildOptions options;
    options.directions = Direction::kBoth;
    ASSERT_OK(BuildStore(path, std::move(input), options));
  }
  {
    const auto graph = Graph::Open(path, {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    EXPECT_STATUS(Graph::Open(path, {.mode = Mode::kWrite}), kBusy);
    WriteBatch batch;
    batch.PutEdge("dog", "fox");
    ASSERT_OK((*graph)->Write(batch));
  }
  const auto graph = Graph::Open(path);
  ASSERT_OK(graph);
  std::vector<std::string> names;
  const auto neighbors = (*graph)->Neighbors("dog");
  ASSERT_OK(neighbors);
  for (const Neighbor& n : *neighbors) names.push_back((*graph)->NameOf(n.vertex));
  EXPECT_EQ(names, (std::vector<std::string>{"wolf", "fox"}));
  EXPECT_EQ((*graph)->Neighbors("dog", Direction::kIn)->size(), 1U);
  EXPECT_STATUS((*graph)->Neighbors("bird"), kNotFound);
  EXPECT_EQ((*graph)->NameOf(4), "");

  const SamplerOptions options{.fanouts = {kAllNeighbors}, .direction = Direction::kOut};
  const auto sample = (*graph)->Sample({"cat", "dog"}, options);
  ASSERT_OK(sample);
  EXPECT_EQ(sample->rows.size(), 4U);
  EXPECT_EQ(sample->neighbors.size(), 3U);
  EXPECT_STATUS((*graph)->Sample({"dog", "bird"}, options), kNotFound);
  EXPECT_STATUS((*graph)->Write(WriteBatch()), kInvalidArgument);
  EXPECT_STATUS(Graph::Open(dir.path() / "absent.rz"), kNotFound);
}

TEST_F(GraphErrorsTest, UnknownIdsAreNotFoundAndQuoted) {
  for (const char* id : {"9", "-1", "03", "dog"}) {
    const auto found = open_.graph->FindText(id);
    EXPECT_STATUS(found, kNotFound);
    EXPECT_NE(found.error().message().find(id), std::string::npos);
  }
}

TEST_F(GraphErrorsTest, VerticesTypesAndEdgesBeyondTheGraphAreRefused) {
  for (const VertexId vertex : {VertexId{-1}, VertexId{9}}) {
    EXPECT_STATUS(open_.graph->Neighbors(vertex, Direction::kOut), kInvalidArgument);
    EXPECT_STATUS(open_.graph->Degree(vertex, Direction::kOut), kInvalidArgument);
    EXPECT_STATUS(open_.graph->NeighborsOfType(vertex, Direction::kOut, 0), kInvalidArgument);
  }
  EXPECT_STATUS(open_.graph->NeighborsOfType(0, Direction::kOut, 1), kInvalidArgument);
  EXPECT_STATUS(open_.graph->TypeOfEdge({0, 20}), kInvalidArgument);
  EXPECT_STATUS(open_.graph->TypeOfEdge({1, 0}), kInvalidArgument);
}

TEST_F(GraphErrorsTest, ADirectionThatIsNotKeptSaysHowToKeepIt) {
  for (const Direction direction : {Direction::kIn, Direction::kBoth}) {
    const auto neighbors = open_.graph->Neighbors(0, direction);
    EXPECT_STATUS(neighbors, kInvalidArgument);
    EXPECT_NE(neighbors.error().message().find("`directions=both`"), std::string::npos);
  }
}

}  // namespace
}  // namespace rhizome
