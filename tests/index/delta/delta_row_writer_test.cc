#include "index/delta/delta_row_writer.h"

#include <gmock/gmock.h>

#include <random>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "storage/catalog/catalog.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using testing::OpenStore;

constexpr std::uint64_t kVertices = 20;
constexpr std::uint64_t kUnknownArray = 12345;

class DeltaRowWriterTest : public ::testing::Test {
 protected:
  DeltaRowWriterTest() {
    std::mt19937_64 rng(1);
    GraphInput input = testing::RandomGraph(rng, {.vertices = kVertices, .edges = 40});
    testing::UpdateModel::AddRows(input);
    EXPECT_OK(testing::BuildStore(path_, std::move(input), {}));
    const auto store = OpenStore(path_, Store::Mode::kWrite);
    EXPECT_OK(store);
    const auto graph = Graph::Open(**store);
    EXPECT_OK(graph);
    WriteBatch batch;
    batch.PutVertex(std::int64_t{20});
    batch.PutVertex(std::int64_t{21});
    EXPECT_OK((*graph)->Write(batch));
  }

  /// Puts {1, 2, 3} and {4, 5, 6} for the two new vertices.
  void PutBoth(std::uint64_t array_id) {
    const auto store = OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = DeltaRowWriter::Open(**store);
    ASSERT_OK(writer);
    EXPECT_EQ((*writer)->vertices(), 22U);
    for (const VertexId vertex : {20, 21}) {
      const float first = vertex == 20 ? 1 : 4;
      const std::vector<float> row = {first, first + 1, first + 2};
      ASSERT_OK((*writer)->Put(array_id, vertex, 12, std::as_bytes(std::span(row))));
    }
  }

  std::vector<float> RowsOf(const Graph& graph, const std::string& array) const {
    const std::vector<VertexId> vertices = {20, 21};
    std::vector<float> rows(6);
    EXPECT_OK(graph.ReadRows(array, vertices, std::as_writable_bytes(std::span(rows))));
    return rows;
  }

  testing::TempDir dir_;
  const Path path_ = dir_ / "g.rz";
};

TEST_F(DeltaRowWriterTest, RowsAreThereAfterReopeningAndCompaction) {
  std::uint64_t array_id = 0;
  {
    const auto open = testing::OpenStoreGraph(path_);
    ASSERT_OK(open);
    array_id = open->store->manifest().FindArray("feat")->array_id;
    EXPECT_THAT(RowsOf(*open->graph, "feat"), ElementsAre(0, 0, 0, 0, 0, 0));
  }
  ASSERT_NO_FATAL_FAILURE(PutBoth(array_id));
  testing::ExpectVerifies(path_);
  const auto store = OpenStore(path_, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  EXPECT_THAT(RowsOf(**graph, "feat"), ElementsAre(1, 2, 3, 4, 5, 6));
  const JobControl control;
  ASSERT_OK((*graph)->Compact({}, control));
  EXPECT_THAT(RowsOf(**graph, "feat"), ElementsAre(1, 2, 3, 4, 5, 6));
}

// A job that dies before it publishes its array leaves such rows.
TEST_F(DeltaRowWriterTest, RowsOfAnArrayThatNoManifestNamesAreNotSeen) {
  ASSERT_NO_FATAL_FAILURE(PutBoth(kUnknownArray));
  testing::ExpectVerifies(path_);
  const auto store = OpenStore(path_, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutEdge(std::int64_t{20}, std::int64_t{3});
  ASSERT_OK((*graph)->Write(batch));  // the chain of commits continues
  EXPECT_THAT(RowsOf(**graph, "feat"), ElementsAre(0, 0, 0, 0, 0, 0));
  const JobControl control;
  ASSERT_OK((*graph)->Compact({}, control));
  std::uint64_t left = 0;
  ASSERT_OK((*store)->ScanDelta((*store)->base_sequence(),
                                [&](std::uint64_t, std::span<const std::byte>) {
                                  ++left;
                                  return Status::Ok();
                                }));
  EXPECT_EQ(left, 0U);
  testing::ExpectVerifies(path_);
}

TEST_F(DeltaRowWriterTest, RefusesVerticesThatAreNotThereAndASecondAuthor) {
  const auto store = OpenStore(path_, Store::Mode::kWrite);
  ASSERT_OK(store);
  const std::vector<std::byte> rows(24);
  {
    const auto writer = DeltaRowWriter::Open(**store);
    ASSERT_OK(writer);
    EXPECT_STATUS((*writer)->Put(1, 21, 12, rows), kInvalidArgument);
    EXPECT_STATUS((*writer)->Put(1, -1, 12, rows), kInvalidArgument);
    EXPECT_STATUS(DeltaRowWriter::Open(**store), kBusy);
  }
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutVertex(std::int64_t{22});
  ASSERT_OK((*graph)->Write(batch));
  EXPECT_STATUS(DeltaRowWriter::Open(**store), kBusy);
  const auto reader = OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  EXPECT_STATUS(DeltaRowWriter::Open(**reader), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
