#include "index/generation/row_coordinates.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "index/base/memory_sink.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

Result<VertexOrder> ShuffledOrder(std::uint64_t rows, std::mt19937_64& rng) {
  std::vector<VertexId> vertex_of_row(rows);
  std::iota(vertex_of_row.begin(), vertex_of_row.end(), VertexId{0});
  std::shuffle(vertex_of_row.begin(), vertex_of_row.end(), rng);
  const std::vector<PartitionId> owners(rows, 0);
  MemorySink sink;
  RHIZOME_RETURN_IF_ERROR(VertexOrder::Write(
      sink, StoreId{},
      {.vertex_of_row = vertex_of_row, .owner_of_vertex = owners, .type_of_vertex = {}}));
  RHIZOME_ASSIGN_OR_RETURN(
      auto file, SectionFile::Parse(sink.Take(), "order.ord", FileKind::kOrder, StoreId{}));
  return VertexOrder::Parse(std::move(file), rows, 1, 1);
}

// Ids that are read from spill files have the same bytes as ids in memory, for any memory limit.
TEST(RowCoordinatesTest, SpilledIdsGiveTheSameBytes) {
  std::mt19937_64 rng(testing::TestSeed());
  constexpr std::uint64_t kRows = 70'000;  // three chunks
  const auto order = ShuffledOrder(kRows, rng);
  ASSERT_OK(order);
  testing::FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/store"));
  auto space = SpillSpace::Create(fs, "/store/scratch", "job", 1 << 20);
  ASSERT_OK(space);
  const Coordinate coordinate{CoordinateKind::kExternalId, "external_id"};
  ASSERT_EQ(CoordinateChunks(kRows), 3U);
  for (const ExternalIdKind kind : {ExternalIdKind::kString, ExternalIdKind::kInteger}) {
    std::vector<ExternalId> ids(kRows);
    auto by_vertex = IdSpoolWriter::Create(**space, 1 << 16);
    ASSERT_OK(by_vertex);
    for (ExternalId& id : ids) {
      const auto number = static_cast<std::int64_t>(rng());
      const std::string text(rng() % 12, static_cast<char>('a' + rng() % 26));
      id = kind == ExternalIdKind::kString ? ExternalId(text) : ExternalId(number);
      ASSERT_OK(by_vertex->Add(
          kind == ExternalIdKind::kString
              ? std::string_view(text)
              : std::string_view(reinterpret_cast<const char*>(&number), sizeof(number))));
    }
    const RowIds held = RowIdsOf(
        kind, [](VertexId) { return false; },
        [&](VertexId vertex) { return ids[static_cast<std::size_t>(vertex)]; });
    auto spool = by_vertex->Finish();
    ASSERT_OK(spool);
    auto by_row = ReorderIds(
        **space, *std::move(spool),
        [&](std::uint64_t v) {
          return static_cast<std::uint64_t>(order->RowOf(static_cast<VertexId>(v)));
        },
        rng() % 2 == 0 ? 1 : 1 << 30, JobControl());
    ASSERT_OK(by_row);
    const auto read = RowIdsOf(kind, *std::move(by_row));
    ASSERT_OK(read);
    for (std::uint64_t chunk = 0; chunk < 3; ++chunk) {
      const auto one = EncodeCoordinate(coordinate, chunk, *order, held);
      const auto other = EncodeCoordinate(coordinate, chunk, *order, *read);
      ASSERT_OK(one);
      ASSERT_OK(other);
      EXPECT_EQ(*one, *other);
    }
  }
}

TEST(RowCoordinatesTest, NamesThatArraysBearAreAvoidedAndFound) {
  const auto chosen = ChooseCoordinates(ExternalIdKind::kString, 1, [](std::string_view name) {
    return name == "vertex_id" || name == "vertex_id_";
  });
  const std::vector<Coordinate> wanted = {{CoordinateKind::kExternalId, "external_id"},
                                          {CoordinateKind::kVertexId, "vertex_id__"}};
  EXPECT_EQ(chosen, wanted);
  Manifest manifest;
  for (const char* name : {"external_id", "vertex_id", "vertex_id_", "vertex_id__"})
    manifest.files.push_back({std::string("arrays/") + name + "/zarr.json", 1, {}, 0});
  for (const char* name : {"vertex_id", "vertex_id_"}) {
    ArrayEntry array;
    array.name = name;
    manifest.arrays.push_back(array);
  }
  EXPECT_EQ(CoordinatesOf(manifest), wanted);
  EXPECT_EQ(ParseCoordinateChunk(wanted[0], "arrays/external_id/c.0"), 0U);
  EXPECT_EQ(ParseCoordinateChunk(wanted[0], "arrays/external_id/c.12"), 12U);
  for (const char* other : {"arrays/external_id/c.", "arrays/external_id/c.012",
                            "arrays/external_id/zarr.json", "arrays/external_id/c.1.0"})
    EXPECT_EQ(ParseCoordinateChunk(wanted[0], other), std::nullopt) << other;
}

}  // namespace
}  // namespace rhizome
