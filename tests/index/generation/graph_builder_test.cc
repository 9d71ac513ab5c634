#include "index/generation/graph_builder.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "index/generation/graph_input.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::OpenStoreGraph;
using testing::RandomGraph;

GraphInput SmallGraph() {
  std::mt19937_64 rng(3);
  return RandomGraph(rng, {.vertices = 300,
                           .edges = 900,
                           .vertex_types = 2,
                           .edge_types = 3,
                           .weighted = true,
                           .id_kind = ExternalIdKind::kString});
}

BuildOptions FourPartitions() {
  BuildOptions options;
  options.partition.partitions = 4;
  return options;
}

// The row of vertex v is {10 v, 10 v + 1}, so that a misplaced row is noticed.
ArrayInput Features(ArrayLayout layout, std::uint64_t chunk_rows) {
  ArrayInput array;
  array.name = layout == ArrayLayout::kRow ? "feat" : "scan";
  array.dim = 2;
  array.layout = layout;
  array.codec = {.kind = CodecKind::kBloscLz4, .level = 5};
  array.chunk_rows = chunk_rows;
  array.attributes = {{"zebra", "1"}, {"ant", "2"}};
  array.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const float row[2] = {static_cast<float>(10 * vertices[i]),
                            static_cast<float>(10 * vertices[i] + 1)};
      std::memcpy(out.data() + i * sizeof(row), row, sizeof(row));
    }
    return Status::Ok();
  };
  return array;
}

std::map<std::string, std::string> FilesOf(const Path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().lexically_relative(folder).string()] = {std::istreambuf_iterator<char>(file),
                                                               {}};
  }
  return files;
}

TEST(GraphBuilderTest, ArraysFollowTheOrderOfRows) {
  const testing::TempDir folder;
  GraphInput input = SmallGraph();
  input.arrays = {Features(ArrayLayout::kRow, 0), Features(ArrayLayout::kChunk, 128)};
  ASSERT_OK(BuildStore(folder / "g", std::move(input), FourPartitions()));
  const auto open = OpenStoreGraph(folder / "g");
  ASSERT_OK(open);
  for (const char* name : {"feat", "scan"}) {
    const auto array = open->store->OpenArray(name);
    ASSERT_OK(array);
    std::vector<float> rows(300 * 2);
    ASSERT_OK((*array)->ReadRows(0, 300, std::as_writable_bytes(std::span(rows))));
    for (VertexId v = 0; v < 300; ++v) {
      const auto row = static_cast<std::size_t>(*open->graph->RowOf(v));
      EXPECT_EQ(rows[2 * row], static_cast<float>(10 * v));
      EXPECT_EQ(rows[2 * row + 1], static_cast<float>(10 * v + 1));
    }
    EXPECT_EQ((*array)->entry().attributes.front().first, "ant");
  }
}

TEST(GraphBuilderTest, ManifestSaysWhatWasBuilt) {
  const testing::TempDir folder;
  GraphInput input = SmallGraph();
  input.undirected = true;
  const std::size_t directed = testing::GraphModel(input).edges().size();
  ASSERT_OK(BuildStore(folder / "g", std::move(input), FourPartitions()));
  const auto open = OpenStoreGraph(folder / "g");
  ASSERT_OK(open);
  const GenerationInfo& info = open->graph->info();
  EXPECT_EQ(info.vertices, 300U);
  EXPECT_EQ(info.edges, directed);
  EXPECT_EQ(info.partitions, 4U);
  EXPECT_EQ(info.id_kind, ExternalIdKind::kString);
  EXPECT_TRUE(info.symmetric);
  EXPECT_TRUE(info.weighted);
  EXPECT_EQ(info.partitioner, "refined");
  EXPECT_EQ(info.order, "pds");
  EXPECT_GE(info.replication_factor, 1.0);
  EXPECT_GT(info.interior_share, 0.0);
  EXPECT_EQ(info.edge_types, (std::vector<std::string>{"edge0", "edge1", "edge2"}));
  EXPECT_GT(open->graph->topology_bytes(), 0U);
}

TEST(GraphBuilderTest, SameInputAndStoreIdGiveTheSameBytes) {
  const testing::TempDir folder;
  for (const char* name : {"a", "b"}) {
    GraphInput input = SmallGraph();
    input.arrays = {Features(ArrayLayout::kRow, 0)};
    ASSERT_OK(BuildStore(folder / name, std::move(input), FourPartitions()));
  }
  const auto first = FilesOf(folder / "a/generations");
  EXPECT_GT(first.size(), 8U);
  EXPECT_EQ(first, FilesOf(folder / "b/generations"));
}

TEST(GraphBuilderTest, AnEmptyGraphIsAGraph) {
  const testing::TempDir folder;
  GraphInput input;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  ASSERT_OK(BuildStore(folder / "g", std::move(input), FourPartitions()));
  const auto open = OpenStoreGraph(folder / "g");
  ASSERT_OK(open);
  EXPECT_EQ(open->graph->vertex_count(), 0U);
  EXPECT_STATUS(open->graph->Neighbors(0, Direction::kOut), kInvalidArgument);
}

class BadInputTest : public ::testing::Test {
 protected:
  // Expects an error whose message contains this word, and that nothing is committed. Inputs that
  // are rejected before the store is touched need no store.
  void ExpectRefused(GraphInput input, const std::string& word,
                     const BuildOptions& options = FourPartitions()) {
    Status status = CheckGraphInput(input, options);
    if (status.ok()) {
      const testing::TempDir folder;
      status = BuildStore(folder / "g", std::move(input), options);
      EXPECT_STATUS(Store::Open(FileSystem::Posix(), folder / "g", Store::Mode::kRead), kNotFound);
    }
    EXPECT_STATUS(status, kInvalidArgument);
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
  template <typename Change>
  void ExpectRefusedWith(Change change, const std::string& word) {
    GraphInput input = SmallGraph();
    change(input);
    ExpectRefused(std::move(input), word);
  }
};

TEST_F(BadInputTest, BuildGenerationChecksFirst) {
  const testing::TempDir folder;
  GraphInput input = SmallGraph();
  input.edges.src[7] = 300;
  EXPECT_STATUS(BuildStore(folder / "g", std::move(input), FourPartitions()), kInvalidArgument);
  EXPECT_STATUS(Store::Open(FileSystem::Posix(), folder / "g", Store::Mode::kRead), kNotFound);
}

TEST_F(BadInputTest, EdgesAreChecked) {
  ExpectRefusedWith([](GraphInput& g) { g.edges.src[7] = 300; }, "edge 7");
  ExpectRefusedWith([](GraphInput& g) { g.edges.dst[8] = -1; }, "edge 8");
  ExpectRefusedWith([](GraphInput& g) { g.edges.dst.pop_back(); }, "dst");
  ExpectRefusedWith([](GraphInput& g) { g.edges.type[5] = 3; }, "edge 5");
  ExpectRefusedWith([](GraphInput& g) { g.edges.type.pop_back(); }, "type");
  ExpectRefusedWith([](GraphInput& g) { g.edges.weight[4] = std::nanf(""); }, "edge 4");
  ExpectRefusedWith([](GraphInput& g) { g.edges.weight.pop_back(); }, "weight");
  ExpectRefusedWith(
      [](GraphInput& g) {
        g.edges.weight.clear();
        g.weighted = true;
      },
      "weight");
}

TEST_F(BadInputTest, VerticesAndNamesAreChecked) {
  ExpectRefusedWith([](GraphInput& g) { g.vertex_type[3] = 2; }, "vertex 3");
  ExpectRefusedWith([](GraphInput& g) { g.vertex_type.pop_back(); }, "vertex type");
  ExpectRefusedWith([](GraphInput& g) { g.string_ids.pop_back(); }, "id");
  ExpectRefusedWith([](GraphInput& g) { g.string_ids[5] = g.string_ids[6]; }, "same external id");
  ExpectRefusedWith([](GraphInput& g) { g.string_ids[5] = "\xFF"; }, "UTF-8");
  ExpectRefusedWith([](GraphInput& g) { g.id_kind = ExternalIdKind::kInteger; }, "integer id");
  ExpectRefusedWith([](GraphInput& g) { g.id_kind = ExternalIdKind::kInvalid; }, "external ids");
  ExpectRefusedWith([](GraphInput& g) { g.edge_type_names.clear(); }, "edge types");
  ExpectRefusedWith([](GraphInput& g) { g.edge_type_names[1] = "edge0"; }, "twice");
  ExpectRefusedWith([](GraphInput& g) { g.vertex_type_names[0] = "a\tb"; }, "control");
  ExpectRefusedWith([](GraphInput& g) { g.vertex_count = UINT64_MAX; }, "vertices");
}

TEST_F(BadInputTest, ArraysAreChecked) {
  const auto with = [&](auto change, const std::string& word) {
    ExpectRefusedWith(
        [&](GraphInput& g) {
          g.arrays = {Features(ArrayLayout::kRow, 0)};
          change(g.arrays[0]);
        },
        word);
  };
  with([](ArrayInput& a) { a.name = "../../etc"; }, "../../etc");
  with([](ArrayInput& a) { a.name = ""; }, "name");
  with([](ArrayInput& a) { a.name = "feat.crc32c"; }, "crc32c");
  with([](ArrayInput& a) { a.dim = 0; }, "feat");
  with([](ArrayInput& a) { a.dim = UINT64_MAX / 2; }, "feat");
  with([](ArrayInput& a) { a.dtype = DataType::kInvalid; }, "feat");
  with([](ArrayInput& a) { a.read_rows = nullptr; }, "no source of rows");
  ExpectRefusedWith(
      [](GraphInput& g) {
        g.arrays = {Features(ArrayLayout::kRow, 0), Features(ArrayLayout::kRow, 0)};
      },
      "twice");
}

TEST_F(BadInputTest, PartitionCountsAreChecked) {
  for (const std::uint32_t partitions : {std::uint32_t{0}, std::uint32_t{kMaxPartitions + 1}}) {
    BuildOptions options;
    options.partition.partitions = partitions;
    ExpectRefused(SmallGraph(), "partitions", options);
  }
}

TEST(GraphBuilderTest, AnErrorOfAnArrayEndsTheBuild) {
  const testing::TempDir folder;
  GraphInput input = SmallGraph();
  input.arrays = {Features(ArrayLayout::kRow, 128)};
  input.arrays[0].read_rows = [](std::span<const VertexId>, std::span<std::byte>) {
    return Status::IoError("features.npy: read failed");
  };
  EXPECT_STATUS(BuildStore(folder / "g", std::move(input), FourPartitions()), kIoError);
  EXPECT_STATUS(Store::Open(FileSystem::Posix(), folder / "g", Store::Mode::kRead), kNotFound);
}

// Cancels the build at the first report of each phase. Nothing may become visible.
TEST(GraphBuilderTest, CancellingAtAnyPhaseLeavesNoStore) {
  for (const std::string stop : {"partition", "order", "topology", "arrays", "commit"}) {
    const testing::TempDir folder;
    GraphInput input = SmallGraph();
    input.arrays = {Features(ArrayLayout::kRow, 128)};
    JobControl* self = nullptr;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == stop) self->Cancel();
    });
    self = &control;
    auto store = Store::Create(FileSystem::Posix(), folder / "g", StoreId{});
    ASSERT_OK(store);
    EXPECT_STATUS(BuildGeneration(**store, std::move(input), FourPartitions(), control),
                  kInterrupted);
    store->reset();
    EXPECT_STATUS(Store::Open(FileSystem::Posix(), folder / "g", Store::Mode::kRead), kNotFound);
  }
}

}  // namespace
}  // namespace rhizome
