#include "rhizome/manifest.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "storage/array/array_rules.h"
#include "storage/array/manifest_format.h"
#include "storage/array_fixture.h"
#include "storage/base/hash.h"
#include "storage/base/utf8.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::FixedStoreId;
using testing::MakeEntry;

Manifest SmallManifest() {
  Manifest manifest;
  manifest.generation = 3;
  manifest.version = 2;
  manifest.info = testing::SmallInfo(123);
  manifest.info.edges = 456;
  manifest.info.weighted = true;
  manifest.info.replication_factor = 1.5;
  manifest.info.edge_types = {"likes", "knows"};
  manifest.files = {{"arrays/f/c.0.0", 640, Xxh3({}), 5}, {"topology/part-0000.adj", 9, {}, 6}};
  manifest.arrays = {
      MakeEntry("f", 123, 2, DataType::kInt64, ArrayLayout::kChunk, CodecKind::kBloscZstd, 128)};
  manifest.arrays[0].attributes = {{"model", "ab\xC3\xA9"}, {"snapshot", "12"}};
  return manifest;
}

/// Applies a change, then encodes. The reader must report corruption.
template <typename Change>
void ExpectRefusedOfManifest(Change change, std::string_view field) {
  Manifest manifest = SmallManifest();
  change(manifest);
  const auto decoded = DecodeManifest(EncodeManifest(manifest, FixedStoreId()), FixedStoreId());
  EXPECT_STATUS(decoded, kCorruption);
  const std::string message = decoded ? "" : decoded.error().message();
  EXPECT_NE(message.find(field), std::string::npos) << message;
}

TEST(ManifestTest, DecodingGivesBackWhatWasEncoded) {
  const Manifest manifest = SmallManifest();
  const auto bytes = EncodeManifest(manifest, FixedStoreId());
  const auto decoded = DecodeManifest(bytes, FixedStoreId());
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->generation, 3u);
  EXPECT_EQ(decoded->version, 2u);
  EXPECT_EQ(decoded->files, manifest.files);
  EXPECT_EQ(decoded->arrays, manifest.arrays);
  EXPECT_EQ(decoded->info.vertices, 123u);
  EXPECT_EQ(decoded->info.edges, 456u);
  EXPECT_EQ(decoded->info.edge_types, manifest.info.edge_types);
  EXPECT_EQ(decoded->info.replication_factor, 1.5);
  EXPECT_TRUE(decoded->info.weighted);
  EXPECT_EQ(EncodeManifest(*decoded, FixedStoreId()), bytes);
  EXPECT_EQ(decoded->FindFile("topology/part-0000.adj")->size_bytes, 9u);
  EXPECT_EQ(decoded->FindFile("topology"), nullptr);
  EXPECT_NE(decoded->FindArray("f"), nullptr);
  EXPECT_EQ(decoded->FindArray("g"), nullptr);
}

TEST(ManifestTest, EveryFlippedBitIsCorruption) {
  auto bytes = EncodeManifest(SmallManifest(), FixedStoreId());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const auto decoded = DecodeManifest(bytes, FixedStoreId());
    ASSERT_FALSE(decoded) << "bit " << bit;
    ASSERT_EQ(decoded.error().code(), StatusCode::kCorruption) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
}

TEST(ManifestTest, EveryTruncationAndAnyTailIsCorruption) {
  auto bytes = EncodeManifest(SmallManifest(), FixedStoreId());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_STATUS(DecodeManifest(std::span(bytes).first(length), FixedStoreId()), kCorruption);
  bytes.push_back(std::byte{0});
  EXPECT_STATUS(DecodeManifest(bytes, FixedStoreId()), kCorruption);
}

/// Writes `value` at `offset` and corrects the seal, as a malicious writer would.
template <typename T>
std::vector<std::byte> Resealed(std::size_t offset, T value) {
  auto bytes = EncodeManifest(SmallManifest(), FixedStoreId());
  StoreLittle(bytes.data() + offset, value);
  const std::size_t end = bytes.size() - 4;
  StoreLittle(bytes.data() + end, Crc32c(std::span(bytes).first(end)));
  return bytes;
}

TEST(ManifestTest, NewerVersionIsUnsupportedAndReservedBitsAreRefused) {
  EXPECT_STATUS(DecodeManifest(Resealed<std::uint32_t>(8, 7), FixedStoreId()), kUnsupported);
  EXPECT_STATUS(DecodeManifest(Resealed<std::uint32_t>(8, 0), FixedStoreId()), kCorruption);
  EXPECT_STATUS(DecodeManifest(Resealed<std::uint32_t>(12, 1), FixedStoreId()), kCorruption);
}

// Older builds would look for added texts among the sorted ones.
TEST(ManifestTest, OnlyAddedTextsNeedVersion5) {
  Manifest manifest = SmallManifest();
  const auto version = [&] {
    const auto bytes = EncodeManifest(manifest, FixedStoreId());
    EXPECT_OK(DecodeManifest(bytes, FixedStoreId()));
    return static_cast<int>(bytes[8]);
  };
  EXPECT_LT(version(), 4);
  manifest.arrays.front().attributes = {{"texts_added", "2"}};
  EXPECT_LT(version(), 4);
  manifest.arrays.front().attributes = {{"texts_added", "2"}, {"type", "text"}};
  EXPECT_EQ(version(), 5);
}

Manifest ManifestWithEnds() {
  Manifest manifest = SmallManifest();
  manifest.info.vertex_types = {"paper", "author", "venue"};
  manifest.info.edge_ends = {{0, 2}, {kSeveralTypes, 1}};
  return manifest;
}

TEST(ManifestTest, TheEndsOfEdgeTypesNeedVersion6) {
  Manifest manifest = ManifestWithEnds();
  const auto bytes = EncodeManifest(manifest, FixedStoreId());
  EXPECT_EQ(static_cast<int>(bytes[8]), 6);
  const auto decoded = DecodeManifest(bytes, FixedStoreId());
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->info.edge_ends, manifest.info.edge_ends);
  EXPECT_EQ(EncodeManifest(*decoded, FixedStoreId()), bytes);
  manifest.info.edge_ends.clear();
  const auto without = EncodeManifest(manifest, FixedStoreId());
  EXPECT_EQ(static_cast<int>(without[8]), 3);
  EXPECT_EQ(bytes.size(), without.size() + 8);
}

TEST(ManifestTest, EndsBeyondTheVertexTypesAreRefused) {
  const auto refused = [](const Manifest& manifest) {
    const auto decoded = DecodeManifest(EncodeManifest(manifest, FixedStoreId()), FixedStoreId());
    EXPECT_STATUS(decoded, kCorruption);
    return decoded ? std::string() : decoded.error().message();
  };
  Manifest manifest = ManifestWithEnds();
  manifest.info.edge_ends[1].source = 3;
  EXPECT_THAT(refused(manifest),
              ::testing::HasSubstr("end of an edge type: is 3, but there are 3"));
  manifest.info.edge_ends[1] = {0, 65534};
  EXPECT_THAT(refused(manifest), ::testing::HasSubstr("is 65534, but there are 3"));
  manifest = ManifestWithEnds();
  manifest.info.vertex_types = {"paper"};
  EXPECT_THAT(refused(manifest), ::testing::HasSubstr("are 1 vertex types"));
  manifest.info.edge_ends = {{0, 0}, EdgeEnds()};
  EXPECT_THAT(refused(manifest), ::testing::HasSubstr("there is only one vertex type"));
}

TEST(ManifestTest, EveryTruncationWithEndsIsCorruption) {
  const auto bytes = EncodeManifest(ManifestWithEnds(), FixedStoreId());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_STATUS(DecodeManifest(std::span(bytes).first(length), FixedStoreId()), kCorruption);
}

TEST(ManifestTest, AnotherStoresManifestIsRefused) {
  const auto bytes = EncodeManifest(SmallManifest(), FixedStoreId(1));
  EXPECT_STATUS(DecodeManifest(bytes, FixedStoreId(2)), kCorruption);
}

// The seal is correct, so only the checks of the single fields remain. Every 4-byte word of the
// file is set to huge values; decoding must not crash or allocate that much.
TEST(ManifestTest, HugeNumbersAnywhereAreHarmless) {
  const std::size_t size = EncodeManifest(SmallManifest(), FixedStoreId()).size();
  for (std::size_t offset = 32; offset + 8 <= size - 4; ++offset) {
    (void)DecodeManifest(Resealed(offset, ~std::uint64_t{0} >> 1), FixedStoreId()).has_value();
    (void)DecodeManifest(Resealed(offset, ~std::uint32_t{0}), FixedStoreId()).has_value();
  }
}

TEST(ManifestTest, BadFieldsAreNamed) {
  ExpectRefusedOfManifest([](Manifest& m) { m.generation = 0; }, "generation");
  ExpectRefusedOfManifest([](Manifest& m) { m.version = 0; }, "manifest version");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.vertex_types = {}; }, "vertex types");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.vertex_types = {"a", "a"}; }, "vertex type");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.edge_types = {"a\tb"}; }, "edge type");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.id_kind = ExternalIdKind::kInvalid; },
                          "external id");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.directions = Direction{4}; }, "directions");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.partitions = 1025; }, "partitions");
  ExpectRefusedOfManifest([](Manifest& m) { m.info.interior_share = std::nan(""); },
                          "interior share");
  ExpectRefusedOfManifest(
      [](Manifest& m) { m.info.edge_balance = std::numeric_limits<double>::infinity(); },
      "edge balance");
  ExpectRefusedOfManifest([](Manifest& m) { std::swap(m.files[0], m.files[1]); }, "sorted");
  ExpectRefusedOfManifest([](Manifest& m) { m.files[1] = m.files[0]; }, "unique");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays.push_back(m.arrays[0]); }, "unique");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].name = ".."; }, "array");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].dim = 0; }, "dimension");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].chunk_rows = std::uint64_t{1} << 40; },
                          "chunk");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].rows = ~std::uint64_t{0}; }, "rows");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].codec.level = 10; }, "level");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].layout = ArrayLayout::kRow; }, "layout");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].layout = ArrayLayout{9}; }, "layout");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].dtype = DataType{99}; }, "element type");
  ExpectRefusedOfManifest([](Manifest& m) { m.arrays[0].attributes[1].second = "\xFF"; }, "UTF-8");
  ExpectRefusedOfManifest(
      [](Manifest& m) { std::swap(m.arrays[0].attributes[0], m.arrays[0].attributes[1]); },
      "attribute");
}

TEST(ManifestTest, PathsThatLeaveTheFolderAreRefused) {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".hidden", "a/.b",
                           "a b", "a\\b", "PIN", "MANIFEST-000001", "a/\xC3\xA9"})
    EXPECT_STATUS(CheckRelativePath(path), kInvalidArgument);
  for (const char* path : {"a", "arrays/x.crc32c/c.0.0", "topology/part-0000.adj"})
    EXPECT_OK(CheckRelativePath(path));
}

TEST(ManifestTest, Utf8IsCheckedStrictly) {
  EXPECT_TRUE(IsUtf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"})
    EXPECT_FALSE(IsUtf8(bad));
}

}  // namespace
}  // namespace rhizome
