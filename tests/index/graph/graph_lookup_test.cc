#include "rhizome/graph_lookup.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

struct Opened {
  TempDir dir;
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

void OpenRandom(std::mt19937_64& rng, Opened& opened) {
  GraphInput input = RandomGraph(rng, {.edge_types = 1 + static_cast<std::uint32_t>(rng() % 3),
                                       .weighted = rng() % 2 == 0,
                                       .undirected = rng() % 2 == 0});
  UpdateModel::AddRows(input);
  BuildOptions options;
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = 1 + static_cast<std::uint32_t>(rng() % 3);
  ASSERT_OK(BuildStore(opened.dir / "g.rz", std::move(input), options));
  auto store = Store::Open(FileSystem::Posix(), opened.dir / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  opened.store = *std::move(store);
  auto graph = Graph::Open(*opened.store);
  ASSERT_OK(graph);
  opened.graph = *std::move(graph);
}

void ExpectSame(const Graph& graph, const RowLookup& rows, std::mt19937_64& rng) {
  std::vector<VertexId> vertices(40);
  for (VertexId& vertex : vertices) vertex = static_cast<VertexId>(rng() % graph.vertex_count());
  for (const Direction direction : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
    NeighborLists lists;
    ASSERT_OK(LookUpNeighbors(graph, vertices, direction, lists));
    ASSERT_EQ(lists.offsets.size(), vertices.size() + 1);
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      std::vector<Neighbor> found;
      for (std::uint64_t e = lists.offsets[i]; e < lists.offsets[i + 1]; ++e)
        found.push_back({lists.vertices[e], lists.types.empty() ? TypeId{0} : lists.types[e],
                         lists.weights.empty() ? 1 : lists.weights[e]});
      auto expected = graph.Neighbors(vertices[i], direction);
      ASSERT_OK(expected);
      std::sort(found.begin(), found.end(), testing::ComesBefore);
      std::sort(expected->begin(), expected->end(), testing::ComesBefore);
      EXPECT_EQ(found, *expected);
    }
  }
  std::vector<std::byte> expected(vertices.size() * rows.row_bytes());
  std::vector<std::byte> found(expected.size());
  ASSERT_OK(graph.ReadRows("feat", vertices, expected));
  ASSERT_OK(rows.Read(vertices, found));
  EXPECT_EQ(found, expected);
}

TEST(GraphLookupTest, BatchesSayWhatSingleReadsSay) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 4; ++round) {
    Opened opened;
    OpenRandom(rng, opened);
    const auto rows = RowLookup::Open(*opened.graph, "feat", {.memory_bytes = rng() % 2 * 100000});
    ASSERT_OK(rows);
    ExpectSame(*opened.graph, **rows, rng);
    WriteBatch batch;
    const std::vector<float> row = {1, 2, 3};
    for (std::int64_t i = 0; i < 10; ++i) {
      batch.PutEdge(static_cast<std::int64_t>(rng() % 30), static_cast<std::int64_t>(rng() % 30));
      batch.PutRow(static_cast<std::int64_t>(rng() % 30), "feat", std::span<const float>(row));
    }
    batch.DeleteVertex(static_cast<std::int64_t>(rng() % 30));
    ASSERT_OK(opened.graph->Write(batch));
    ExpectSame(*opened.graph, **rows, rng);
    if (HasFailure()) return;
  }
}

TEST(GraphLookupTest, StopsAtItsDeadlineAndWhenCancelled) {
  std::mt19937_64 rng(7);
  Opened opened;
  OpenRandom(rng, opened);
  const auto rows = RowLookup::Open(*opened.graph, "feat");
  ASSERT_OK(rows);
  const std::vector<VertexId> vertices = {0, 1, 2};
  std::vector<std::byte> out(vertices.size() * (*rows)->row_bytes());
  NeighborLists lists;
  const LookupOptions late{.deadline = std::chrono::steady_clock::now()};
  EXPECT_STATUS(LookUpNeighbors(*opened.graph, vertices, Direction::kOut, lists, late),
                kInterrupted);
  EXPECT_STATUS((*rows)->Read(vertices, out, late), kInterrupted);
  JobControl control;
  const LookupOptions stoppable{.control = &control};
  EXPECT_OK(LookUpNeighbors(*opened.graph, vertices, Direction::kOut, lists, stoppable));
  control.Cancel();
  EXPECT_STATUS(LookUpNeighbors(*opened.graph, vertices, Direction::kOut, lists, stoppable),
                kInterrupted);
  EXPECT_STATUS((*rows)->Read(vertices, out, stoppable), kInterrupted);
}

TEST(GraphLookupTest, RefusesWhatIsNotThere) {
  std::mt19937_64 rng(7);
  Opened opened;
  OpenRandom(rng, opened);
  EXPECT_STATUS(RowLookup::Open(*opened.graph, "nope"), kNotFound);
  const auto rows = RowLookup::Open(*opened.graph, "feat");
  ASSERT_OK(rows);
  const VertexId beyond = 1000;
  std::vector<std::byte> out((*rows)->row_bytes());
  NeighborLists lists;
  EXPECT_STATUS(LookUpNeighbors(*opened.graph, std::span(&beyond, 1), Direction::kOut, lists),
                kInvalidArgument);
  EXPECT_STATUS((*rows)->Read(std::span(&beyond, 1), out), kInvalidArgument);
  const VertexId vertex = 1;
  EXPECT_STATUS((*rows)->Read(std::span(&vertex, 1), std::span(out).first(3)), kInvalidArgument);
}

TEST(GraphLookupTest, ManyThreadsReadBesideAWriter) {
  std::mt19937_64 rng(7);
  Opened opened;
  OpenRandom(rng, opened);
  const auto rows = RowLookup::Open(*opened.graph, "feat");
  ASSERT_OK(rows);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      const std::vector<VertexId> vertices = {0, 1, 2, 3};
      std::vector<float> out(vertices.size() * UpdateModel::kDim);
      NeighborLists lists;
      for (int i = 0; i < 200; ++i) {
        if (!LookUpNeighbors(*opened.graph, vertices, Direction::kOut, lists).ok()) ++wrong;
        if (!(*rows)->Read(vertices, std::as_writable_bytes(std::span(out))).ok()) ++wrong;
        // The writer puts rows of three equal numbers.
        const bool first = out[0] == 0 && out[1] == 0 && out[2] == 7;
        if (!first && (out[0] != out[1] || out[1] != out[2])) ++wrong;
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    WriteBatch batch;
    const std::vector<float> row(UpdateModel::kDim, static_cast<float>(i));
    batch.PutRow(0, "feat", std::span<const float>(row));
    batch.PutEdge(0, 1);
    EXPECT_OK(opened.graph->Write(batch, {.sync = false}));
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace rhizome
