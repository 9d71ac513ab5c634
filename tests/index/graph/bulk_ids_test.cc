#include <algorithm>
#include <numeric>
#include <random>
#include <string_view>

#include "index/graph/edges_by_id.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::WithUpdatedGraphs;

/// Returns all vertices of a graph in random order.
std::vector<VertexId> ShuffledVertices(const Graph& graph, std::mt19937_64& rng) {
  std::vector<VertexId> vertices(graph.vertex_count());
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  std::shuffle(vertices.begin(), vertices.end(), rng);
  return vertices;
}

void ExpectBulkIsSingle(const Graph& graph, std::mt19937_64& rng) {
  const std::vector<VertexId> vertices = ShuffledVertices(graph, rng);
  std::vector<Row> rows(vertices.size());
  std::vector<VertexId> back(vertices.size());
  std::vector<TypeId> types(vertices.size());
  ASSERT_OK(RowsOf(graph, vertices, rows));
  ASSERT_OK(VerticesAt(graph, rows, back));
  ASSERT_OK(TypesOf(graph, vertices, types));
  EXPECT_EQ(back, vertices);
  const auto ids = ExternalIdsOf(graph, vertices);
  ASSERT_OK(ids);
  std::vector<std::string_view> texts(ids->texts.begin(), ids->texts.end());
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    EXPECT_EQ(rows[i], *graph.RowOf(vertices[i]));
    EXPECT_EQ(types[i], *graph.TypeOf(vertices[i]));
    const ExternalId id =
        ids->texts.empty() ? ExternalId(ids->integers[i]) : ExternalId(ids->texts[i]);
    EXPECT_EQ(id, *graph.ExternalIdOf(vertices[i]));
  }
  const Status found = FindAll(graph, {.integers = ids->integers, .texts = texts}, back);
  // The id of a deleted vertex is not found, unless a later vertex has the same id.
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const auto one = graph.Find(*graph.ExternalIdOf(vertices[i]));
    if (!one) {
      EXPECT_STATUS(found, kNotFound);
      return;
    }
    EXPECT_TRUE(!found.ok() || back[i] == *one);
  }
  EXPECT_OK(found);
}

TEST(BulkIdsTest, ManyAreAsManyTimesOne) {
  std::mt19937_64 rng(testing::TestSeed());
  WithUpdatedGraphs(rng, [&](const Graph& graph) { ExpectBulkIsSingle(graph, rng); });
}

TEST(BulkIdsTest, RefuseWhatIsOutOfRange) {
  std::mt19937_64 rng(testing::TestSeed());
  WithUpdatedGraphs(rng, [&](const Graph& graph) {
    std::int64_t out = 0;
    for (const std::int64_t wrong :
         {std::int64_t{-1}, static_cast<std::int64_t>(graph.vertex_count())}) {
      EXPECT_STATUS(RowsOf(graph, std::span(&wrong, 1), std::span(&out, 1)), kInvalidArgument);
      EXPECT_STATUS(VerticesAt(graph, std::span(&wrong, 1), std::span(&out, 1)), kInvalidArgument);
      EXPECT_STATUS(ExternalIdsOf(graph, std::span(&wrong, 1)), kInvalidArgument);
    }
    const std::int64_t first = 0;
    EXPECT_STATUS(RowsOf(graph, std::span(&first, 1), {}), kInvalidArgument);
    EXPECT_STATUS(FindAll(graph, {.integers = std::span(&first, 1)}, {}), kInvalidArgument);
  });
}

TEST(BulkIdsTest, EdgesAreNumberedOneAfterAnother) {
  std::mt19937_64 rng(testing::TestSeed());
  WithUpdatedGraphs(rng, [&](const Graph& graph) {
    const auto fixed = graph.Snapshot();
    const EdgeNumbering numbers(*fixed);
    std::int64_t next = 0;
    for (std::uint32_t p = 0; p < fixed->partition_count(); ++p) {
      for (std::uint64_t e = 0; e < *CountEdgesById(*fixed, p); ++e, ++next) {
        const EdgeId edge{static_cast<PartitionId>(p), e};
        EXPECT_EQ(numbers.Of(edge), next);
        EXPECT_EQ(*numbers.At(next), edge);
      }
    }
    EXPECT_EQ(numbers.generation_edges(), static_cast<std::uint64_t>(next));
    const EdgeId written{static_cast<PartitionId>(fixed->partition_count()), 5};
    EXPECT_EQ(numbers.Of(written), next + 5);
    EXPECT_EQ(*numbers.At(next + 5), written);
    EXPECT_STATUS(numbers.At(-1), kInvalidArgument);
  });
}

}  // namespace
}  // namespace rhizome
