#include <gtest/gtest.h>

#include <random>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::TempDir;
using testing::UpdateModel;

TEST(PutRowsTest, AreRowsPutOneByOne) {
  std::mt19937_64 rng(7);
  const TempDir dir;
  GraphInput input = testing::RandomGraph(rng, {.vertices = 10, .edges = 20});
  UpdateModel::AddRows(input);
  ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(input), {}));
  const auto store = Store::Open(FileSystem::Posix(), dir / "g.rz", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  const std::vector<VertexId> vertices = {4, 1};
  std::vector<ExternalId> ids;
  for (const VertexId vertex : vertices) ids.push_back(*(*graph)->ExternalIdOf(vertex));
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  WriteBatch batch;
  batch.PutRows(ids, "feat", std::as_bytes(std::span(rows)), "float32");
  EXPECT_EQ(batch.size(), 2U);
  ASSERT_OK((*graph)->Write(batch));
  std::vector<float> found(rows.size());
  ASSERT_OK((*graph)->ReadRows("feat", vertices, std::as_writable_bytes(std::span(found))));
  EXPECT_EQ(found, rows);
  for (const auto& [bytes, type] :
       {std::pair{std::as_bytes(std::span(rows)), "int32"},
        std::pair{std::as_bytes(std::span(rows).first(5)), "float32"}}) {
    batch.Clear();
    batch.PutRows(ids, "feat", bytes, type);
    EXPECT_STATUS((*graph)->Write(batch), kInvalidArgument);
  }
  batch.Clear();
  batch.PutRows({}, "feat", {});
  EXPECT_TRUE(batch.empty());
}

}  // namespace
}  // namespace rhizome
