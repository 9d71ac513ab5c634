// Golden files of format 1. tests/index/golden/write_index_files.py wrote them from
// storage/FORMAT.md alone. All later builds must be able to read them; a change of the bytes needs
// a new version and additional golden files.

#include "testing/golden.h"

#include <gmock/gmock.h>

#include "index/base/memory_sink.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_ids.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using testing::GoldenStoreId;
using ::testing::IsEmpty;
using testing::ReadBytes;

std::filesystem::path Folder() { return testing::GoldenFolder("index"); }

// The graph of the script: vertex by row, owner by vertex, type by vertex, edges of partition 0.
const std::vector<VertexId> kVertexAt = {4, 1, 0, 6, 3, 2, 5};
const std::vector<PartitionId> kOwner = {0, 0, 1, 1, 0, 1, 0};
const std::vector<TypeId> kType = {1, 0, 1, 0, 0, 1, 1};

// The external ids of the script, by vertex id.
const std::vector<std::int64_t> kIntegers = {5, INT64_MIN, 42, -1, INT64_MAX, 0, 256};
const std::vector<std::string> kStrings = {
    "b", "", "Z", "\u00fcber", "10", "9", "\U0001f333", std::string(300, 'a'), "a"};

VertexOrder GoldenOrder() {
  auto file = SectionFile::Parse(ReadBytes(Folder() / "order.ord"), "order.ord", FileKind::kOrder,
                                 GoldenStoreId());
  EXPECT_OK(file);
  auto order = VertexOrder::Parse(std::move(file).value(), 7, 2, 2);
  EXPECT_OK(order);
  return std::move(order).value();
}

Adjacency GoldenPartition(const VertexOrder& order, const std::string& name = "part-0000.adj") {
  auto file =
      SectionFile::Parse(ReadBytes(Folder() / name), name, FileKind::kPartition, GoldenStoreId());
  EXPECT_OK(file);
  auto adjacency = Adjacency::Parse(std::move(file).value(), order, 0, 2, 3);
  EXPECT_OK(adjacency);
  return std::move(adjacency).value();
}

Result<VertexIds> GoldenIds(const std::string& name, ExternalIdKind kind, std::uint64_t count) {
  RHIZOME_ASSIGN_OR_RETURN(auto file, SectionFile::Parse(ReadBytes(Folder() / name), name,
                                                         FileKind::kVertexIds, GoldenStoreId()));
  return VertexIds::Parse(std::move(file), kind, count);
}

template <typename T>
void ExpectIds(const VertexIds& ids, const std::vector<T>& expected) {
  for (std::size_t v = 0; v < expected.size(); ++v) {
    const ExternalId id = expected[v];
    EXPECT_EQ(ids.IdOf(static_cast<VertexId>(v)), id);
    EXPECT_EQ(ids.Find(id), static_cast<VertexId>(v)) << ToString(id);
  }
}

TEST(GoldenTest, OrderIsRead) {
  const VertexOrder order = GoldenOrder();
  ASSERT_EQ(order.size(), 7U);
  for (Row row = 0; row < 7; ++row) {
    const VertexId vertex = kVertexAt[static_cast<std::size_t>(row)];
    EXPECT_EQ(order.VertexAt(row), vertex);
    EXPECT_EQ(order.RowOf(vertex), row);
    EXPECT_EQ(order.OwnerOf(row), kOwner[static_cast<std::size_t>(vertex)]);
    EXPECT_EQ(order.TypeOf(row), kType[static_cast<std::size_t>(vertex)]);
  }
  EXPECT_EQ(order.owner_begin(1), 4);
  EXPECT_EQ(order.segments()[3].first_typed_row, 2);  // (owner 1, type 1)
}

// Local ids 0 to 3 are rows 0 to 3 (vertices 4, 1, 0, 6). Local id 4 is row 4 (vertex 3), a mirror.
TEST(GoldenTest, ListsTypesAndWeightsAreRead) {
  const VertexOrder order = GoldenOrder();
  const Adjacency part = GoldenPartition(order);
  EXPECT_EQ(part.edge_count(), 6U);
  EXPECT_EQ(part.owned_count(), 4U);
  EXPECT_EQ(part.vertex_count(), 5U);
  EXPECT_EQ(part.RowOf(4), 4);
  EXPECT_EQ(part.Find(4), 4U);
  EXPECT_EQ(part.Find(5), std::nullopt);
  EXPECT_TRUE(part.has(Direction::kBoth));
  EXPECT_TRUE(part.weighted());
  EXPECT_FALSE(part.symmetric());

  const auto out = part.Neighbors(0, Direction::kOut);  // of vertex 4: types 0, 0, 2
  EXPECT_THAT(out.neighbors, ElementsAre(1, 1, 1));
  EXPECT_EQ(part.TypeOfEntry(0, Direction::kOut, 1), 0);
  EXPECT_EQ(part.TypeOfEntry(0, Direction::kOut, 2), 2);
  EXPECT_EQ(part.Weight(Direction::kOut, 0), -2.0F);
  EXPECT_EQ(part.Weight(Direction::kOut, 1), 1.0F);
  EXPECT_EQ(part.Weight(Direction::kOut, 2), 0.5F);
  EXPECT_THAT(part.NeighborsOfType(0, Direction::kOut, 0).neighbors, ElementsAre(1, 1));
  EXPECT_THAT(part.NeighborsOfType(0, Direction::kOut, 1).neighbors, IsEmpty());

  const auto in = part.Neighbors(1, Direction::kIn);  // of vertex 1: from 4, 4, itself, 4
  EXPECT_THAT(in.neighbors, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(part.Weight(Direction::kIn, in.first + 2), 3.25F);
  EXPECT_EQ(part.Weight(Direction::kIn, in.first + 3), 0.5F);
  EXPECT_EQ(part.TypeOfEdge(3), 1);                                      // 1 -> 1
  EXPECT_EQ(part.TypeOfEdge(4), 0);                                      // 0 -> 3
  EXPECT_EQ(part.TypeOfEdge(5), 1);                                      // 3 -> 4
  EXPECT_THAT(part.Neighbors(3, Direction::kOut).neighbors, IsEmpty());  // isolated
}

TEST(GoldenTest, BoundaryIsRead) {
  const VertexOrder order = GoldenOrder();
  const Adjacency part = GoldenPartition(order);
  for (const LocalId interior : {0U, 1U, 3U}) {
    EXPECT_TRUE(part.interior(interior));
    EXPECT_THAT(part.PartitionSet(interior), IsEmpty());
  }
  for (const LocalId boundary : {2U, 4U}) {
    EXPECT_FALSE(part.interior(boundary));
    EXPECT_THAT(part.PartitionSet(boundary), ElementsAre(3));
  }
  EXPECT_EQ(part.GlobalDegree(0, Direction::kOut), 3U);
  EXPECT_EQ(part.GlobalDegree(1, Direction::kIn), 4U);
  EXPECT_EQ(part.GlobalDegree(2, Direction::kIn), 1U);   // 3 -> 0, in partition 1
  EXPECT_EQ(part.GlobalDegree(4, Direction::kOut), 3U);  // 3 -> 4, 3 -> 2, 3 -> 0
  EXPECT_EQ(part.GlobalDegree(4, Direction::kIn), 2U);
}

TEST(GoldenTest, OurWriterWritesTheSameBytes) {
  MemorySink order_bytes;
  ASSERT_OK(VertexOrder::Write(order_bytes, GoldenStoreId(), {kVertexAt, kOwner, kType, 2, 2}));
  EXPECT_EQ(order_bytes.bytes(), ReadBytes(Folder() / "order.ord"));

  const VertexOrder order = GoldenOrder();
  EdgesOfPartition edges;
  const auto add = [&](VertexId src, VertexId dst, TypeId type, float weight) {
    edges.src.push_back(order.RowOf(src));
    edges.dst.push_back(order.RowOf(dst));
    edges.type.push_back(type);
    edges.weight.push_back(weight);
  };
  add(3, 4, 1, 2.0F);
  add(0, 3, 0, 1.5F);
  add(4, 1, 2, 0.5F);
  add(1, 1, 1, 3.25F);
  add(4, 1, 0, 1.0F);
  add(4, 1, 0, -2.0F);
  // By row, for vertices 4, 1, 0, 6, 3, 2, 5.
  const Degrees out_degree(std::vector<std::uint64_t>{3, 1, 1, 0, 3, 1, 0});
  const Degrees in_degree(std::vector<std::uint64_t>{1, 4, 1, 0, 2, 1, 0});
  const std::vector<std::uint8_t> sets = {1, 1, 3, 0, 3, 2, 0};
  PartitionContext context;
  context.partitions = 2;
  context.edge_types = 3;
  context.weighted = true;
  context.out_degree = &out_degree;
  context.in_degree = &in_degree;
  context.partition_set = sets;
  for (const auto& [codec, name] :
       {std::pair(TopologyCodec::kNone, "part-0000.adj"),
        std::pair(TopologyCodec::kEliasFano, "part-0000-compressed.adj")}) {
    context.codec = codec;
    MemorySink bytes;
    ASSERT_OK(Adjacency::Write(bytes, GoldenStoreId(), order, context, edges));
    EXPECT_EQ(bytes.bytes(), ReadBytes(Folder() / name));
  }
  // This file has attributes instead of weights.
  context.codec = TopologyCodec::kNone;
  context.weighted = false;
  context.attributed = true;
  edges.weight.clear();
  MemorySink bytes;
  ASSERT_OK(Adjacency::Write(bytes, GoldenStoreId(), order, context, edges));
  EXPECT_EQ(bytes.bytes(), ReadBytes(Folder() / "part-0000-attributed.adj"));
}

TEST(GoldenTest, EdgeAttributesKeepTheIdsOfInEdges) {
  const VertexOrder order = GoldenOrder();
  const Adjacency part = GoldenPartition(order, "part-0000-attributed.adj");
  EXPECT_TRUE(part.attributed());
  EXPECT_FALSE(part.weighted());
  ASSERT_TRUE(part.has_edge_ids(Direction::kIn));
  // The in-list of vertex 1: vertex 4 twice by type 0, itself, and vertex 4 by type 2.
  const auto in = part.Neighbors(1, Direction::kIn);
  EXPECT_THAT(in.neighbors, ElementsAre(0, 0, 1, 0));
  std::vector<LocalEdge> edges;
  for (std::uint64_t i = 0; i < 4; ++i) edges.push_back(part.EdgeAt(Direction::kIn, in.first + i));
  EXPECT_THAT(edges, ElementsAre(0, 1, 3, 2));
  EXPECT_EQ(part.Weight(Direction::kIn, in.first), 1.0F);
}

TEST(GoldenTest, CompressedListsAreThoseOfThePlainFile) {
  const VertexOrder order = GoldenOrder();
  const Adjacency plain = GoldenPartition(order);
  const Adjacency compressed = GoldenPartition(order, "part-0000-compressed.adj");
  EXPECT_EQ(compressed.codec(), TopologyCodec::kEliasFano);
  std::vector<LocalId> scratch;
  for (LocalId v = 0; v < plain.vertex_count(); ++v) {
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      const auto list = compressed.ReadList(v, direction, scratch);
      EXPECT_THAT(list, ::testing::ElementsAreArray(plain.Neighbors(v, direction).neighbors));
    }
  }
}

TEST(GoldenTest, IntegerIdsAreReadAndWritten) {
  const auto ids = GoldenIds("ids-integers.dict", ExternalIdKind::kInteger, kIntegers.size());
  ASSERT_OK(ids);
  ExpectIds(*ids, kIntegers);
  EXPECT_EQ(ids->Find(ExternalId(std::int64_t{1})), std::nullopt);

  MemorySink bytes;
  ASSERT_OK(VertexIds::Write(bytes, GoldenStoreId(), kIntegers));
  EXPECT_EQ(bytes.bytes(), ReadBytes(Folder() / "ids-integers.dict"));
}

TEST(GoldenTest, StringIdsAreReadAndWritten) {
  const auto ids = GoldenIds("ids-strings.dict", ExternalIdKind::kString, kStrings.size());
  ASSERT_OK(ids);
  ExpectIds(*ids, kStrings);
  EXPECT_EQ(ids->Find(ExternalId(std::string("aa"))), std::nullopt);

  MemorySink bytes;
  ASSERT_OK(VertexIds::Write(bytes, GoldenStoreId(), kStrings));
  EXPECT_EQ(bytes.bytes(), ReadBytes(Folder() / "ids-strings.dict"));
}

TEST(GoldenTest, TheScriptWritesTheCommittedBytes) {
  testing::ExpectScriptWrites(Folder(), "write_index_files.py");
}

}  // namespace
}  // namespace rhizome
