#include "cache/feed/labels.h"

#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/planted_graph.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kLabelledVertices = 20;
constexpr std::uint64_t kNew = 4;

// Creates a store with arrays `class` and `part` that specify no fill value, so that vertices
// without a row have zeros.
Status MakeStore(const Path& path) {
  GraphInput input;
  input.vertex_count = kLabelledVertices;
  input.edges.src = {0, 1};
  input.edges.dst = {1, 2};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.arrays.push_back(testing::MakeArray("class", 1, DataType::kInt64,
                                            std::vector<std::int64_t>(kLabelledVertices, 3)));
  input.arrays.push_back(testing::MakeArray("part", 1, DataType::kUint8,
                                            std::vector<std::uint8_t>(kLabelledVertices, 2)));
  return testing::AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), {}, StoreId(), JobControl()));
}

// Only the first of the new vertices has a class and a set. All have the same labels before and
// after a compaction.
TEST(LabelsTest, NoVertexIsOfAClassThatItWasNotGiven) {
  const testing::TempDir dir;
  ASSERT_OK(MakeStore(dir / "s"));
  const auto store = Store::Open(FileSystem::Posix(), dir / "s", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  for (std::uint64_t i = 0; i < kNew; ++i)
    batch.PutVertex(static_cast<std::int64_t>(kLabelledVertices + i));
  const std::int64_t label = 1;
  const std::uint8_t part = 0;
  batch.PutRow(static_cast<std::int64_t>(kLabelledVertices), "class", std::span(&label, 1));
  batch.PutRow(static_cast<std::int64_t>(kLabelledVertices), "part", std::span(&part, 1));
  ASSERT_OK((*graph)->Write(batch));
  for (const bool compacted : {false, true}) {
    SCOPED_TRACE(compacted ? "compacted" : "in the delta");
    if (compacted) ASSERT_OK((*graph)->Compact({}, JobControl()));
    const auto now = (*graph)->Snapshot();
    const auto labels = ReadLabels(*now, "class", "part");
    ASSERT_OK(labels);
    EXPECT_EQ(labels->Members(*now, Split::kTest).size(), kLabelledVertices);
    EXPECT_EQ(labels->Members(*now, Split::kTrain),
              std::vector<VertexId>{static_cast<VertexId>(kLabelledVertices)});
    for (std::uint64_t v = 0; v < kLabelledVertices + kNew; ++v) {
      const auto row = static_cast<std::size_t>(*now->RowOf(static_cast<VertexId>(v)));
      EXPECT_EQ(labels->label[row], v < kLabelledVertices    ? 3
                                    : v == kLabelledVertices ? 1
                                                             : -1)
          << v;
    }
  }
}

// The split is column 1 of 3. It is also read for a row in the delta.
TEST(LabelsTest, ASplitMayBeAColumnOfItsArray) {
  const testing::TempDir dir;
  GraphInput input;
  input.vertex_count = 4;
  input.edges.src = {0};
  input.edges.dst = {1};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.arrays.push_back(
      testing::MakeArray("parts", 3, DataType::kUint8,
                         std::vector<std::uint8_t>{9, 0, 9, 9, 1, 9, 9, 2, 9, 9, 255, 9}));
  ASSERT_OK(testing::AsStatus(
      IngestGraph(FileSystem::Posix(), dir / "s", std::move(input), {}, StoreId(), JobControl())));
  const auto store = Store::Open(FileSystem::Posix(), dir / "s", Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  const std::vector<std::uint8_t> parts = {9, 0, 9};
  batch.PutRow(std::int64_t{3}, "parts", std::span(parts));
  ASSERT_OK((*graph)->Write(batch));
  const auto now = (*graph)->Snapshot();
  const auto labels = ReadLabels(*now, "", "parts:1");
  ASSERT_OK(labels);
  EXPECT_EQ(labels->Members(*now, Split::kTrain), (std::vector<VertexId>{0, 3}));
  EXPECT_EQ(labels->Members(*now, Split::kValid), (std::vector<VertexId>{1}));
  EXPECT_EQ(labels->Members(*now, Split::kTest), (std::vector<VertexId>{2}));
  EXPECT_STATUS(ReadLabels(*now, "", "parts:0"), kInvalidArgument);  // its values are not splits
  for (const char* wrong : {"parts", "parts:3", "parts:", "parts:-1", "parts:1x", ":1"}) {
    SCOPED_TRACE(wrong);
    EXPECT_STATUS(ReadLabels(*now, "", wrong), kInvalidArgument);
  }
  EXPECT_STATUS(ReadLabels(*now, "", "none:1"), kNotFound);
}

}  // namespace
}  // namespace rhizome
