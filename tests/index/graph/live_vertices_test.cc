#include "index/graph/live_vertices.h"

#include <random>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/ingest.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::RandomGraph;
using testing::TempDir;

void ExpectIs(const LiveVertices& live, const std::vector<VertexId>& expected,
              std::uint64_t bound) {
  ASSERT_EQ(live.count(), expected.size());
  EXPECT_EQ(live.deleted_count(), bound - expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(live.At(i), expected[i]);
    EXPECT_EQ(live.PlaceOf(expected[i]), i);
  }
  EXPECT_EQ(live.At(expected.size()), static_cast<VertexId>(bound));
  EXPECT_EQ(live.PlaceOf(static_cast<VertexId>(bound)), expected.size());
}

TEST(LiveVerticesTest, CountsWhatIsNotDeleted) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t bound = rng() % 40;
    std::vector<VertexId> deleted;
    std::vector<VertexId> expected;
    for (std::uint64_t v = 0; v < bound; ++v)
      (rng() % 3 == 0 ? deleted : expected).push_back(static_cast<VertexId>(v));
    ExpectIs(LiveVertices(bound, std::move(deleted)), expected, bound);
  }
}

// Deleted vertices are found through the graph, and from the store's files alone, for every kind of
// id.
TEST(LiveVerticesTest, KnowsTheDeletedOfGenerationAndDelta) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const ExternalIdKind kind :
       {ExternalIdKind::kDense, ExternalIdKind::kInteger, ExternalIdKind::kString}) {
    TempDir dir;
    GraphInput input = RandomGraph(rng, {.vertices = 20, .id_kind = kind});
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(input), BuildOptions{}));
    const auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    for (int step = 0; step < 4; ++step) {
      WriteBatch batch;
      for (const std::uint64_t place : {rng() % 20, rng() % 20})
        if (!(*graph)->IsDeleted(static_cast<VertexId>(place)))
          batch.DeleteVertex(*(*graph)->ExternalIdOf(static_cast<VertexId>(place)));
      batch.PutVertex(1000 + step);
      ASSERT_OK((*graph)->Write(batch));
      std::vector<VertexId> expected;
      for (std::uint64_t v = 0; v < (*graph)->vertex_count(); ++v)
        if (!(*graph)->IsDeleted(static_cast<VertexId>(v)))
          expected.push_back(static_cast<VertexId>(v));
      const auto snapshot = (*graph)->Snapshot();
      ExpectIs(LiveVertices::Of(*snapshot), expected, (*graph)->vertex_count());
      const auto of_store = LiveVertices::Of(snapshot->store(), *snapshot->delta());
      ASSERT_OK(of_store);
      ExpectIs(*of_store, expected, (*graph)->vertex_count());
      if (step == 1) ASSERT_OK((*graph)->Compact({}, JobControl()));
    }
  }
}

}  // namespace
}  // namespace rhizome
