#include "index/generation/row_coordinates.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "index/base/memory_sink.h"
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

/// Returns texts in pieces of a few bytes, as if they were read from a file.
StringIds InPieces(const std::vector<std::string>& texts, std::uint64_t& passes) {
  StringIds ids;
  ids.offsets = {0};
  for (const std::string& text : texts) ids.offsets.push_back(ids.offsets.back() + text.size());
  ids.read_bytes =
      [&texts, &passes](const std::function<Status(std::span<const std::byte>)>& put) -> Status {
    ++passes;
    std::string all;
    for (const std::string& text : texts) all += text;
    for (std::size_t at = 0; at < all.size(); at += 7)
      RHIZOME_RETURN_IF_ERROR(put(
          std::as_bytes(std::span(all)).subspan(at, std::min<std::size_t>(7, all.size() - at))));
    return Status::Ok();
  };
  return ids;
}

// The number of passes over the texts depends on the memory limit; the bytes do not.
TEST(RowCoordinatesTest, TextsOnDiskGiveTheSameBytes) {
  std::mt19937_64 rng(testing::TestSeed());
  constexpr std::uint64_t kRows = 70'000;  // three chunks
  const auto order = ShuffledOrder(kRows, rng);
  ASSERT_OK(order);
  std::vector<std::string> texts(kRows);
  for (std::string& text : texts) text.assign(rng() % 12, static_cast<char>('a' + rng() % 26));
  const RowIds held = RowIdsOf(
      ExternalIdKind::kString, [](VertexId) { return false; },
      [&](VertexId vertex) -> ExternalId { return texts[static_cast<std::size_t>(vertex)]; });
  const Coordinate coordinate{CoordinateKind::kExternalId, "external_id"};
  ASSERT_EQ(CoordinateChunks(kRows), 3U);
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
    std::uint64_t passes = 0;
    const StringIds on_disk = InPieces(texts, passes);
    const RowIds read = RowIdsOf(on_disk, *order, memory);
    for (std::uint64_t chunk = 0; chunk < 3; ++chunk) {
      const auto one = EncodeCoordinate(coordinate, chunk, *order, held);
      const auto other = EncodeCoordinate(coordinate, chunk, *order, read);
      ASSERT_OK(one);
      ASSERT_OK(other);
      EXPECT_EQ(*one, *other);
    }
    EXPECT_EQ(passes, memory == 1 ? 3U : 1U);
  }
}

TEST(RowCoordinatesTest, NamesThatArraysBearAreAvoidedAndFound) {
  const auto chosen = ChooseCoordinates(ExternalIdKind::kString, [](std::string_view name) {
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
