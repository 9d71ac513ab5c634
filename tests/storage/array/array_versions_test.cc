#include "storage/array/array_versions.h"

#include <gmock/gmock.h>

#include "storage/array/array_rules.h"
#include "storage/array/manifest_format.h"
#include "storage/array_fixture.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using testing::FixedStoreId;
using testing::MakeEntry;

Manifest VersionedManifest() {
  Manifest manifest;
  manifest.generation = 1;
  manifest.version = 1;
  manifest.info = testing::SmallInfo(10);
  for (const char* name : {"emb.v10", "emb.v2", "emb.v9", "emb.v9.crc32c", "feat", "x.v1", "x.w"})
    manifest.arrays.push_back(
        MakeEntry(name, 10, 2, DataType::kFloat32, ArrayLayout::kRow, CodecKind::kRaw, 128));
  manifest.series = {{"emb", 11, {{"best", {10, 2}}, {"live", {9}}}}, {"x", 1, {}}};
  return manifest;
}

std::string NameOf(const Manifest& manifest, std::string_view reference) {
  const ArrayEntry* array = manifest.FindArray(reference);
  return array == nullptr ? "" : array->name;
}

TEST(ArrayVersionsTest, NamesAreSplitAndPutTogether) {
  EXPECT_EQ(VersionName("emb", 3), "emb.v3");
  const auto split = SplitVersion("a.v1.v23");
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->first, "a.v1");
  EXPECT_EQ(split->second, 23U);
  for (const char* name : {"emb", "emb.v", "emb.v0", "emb.v01", "emb.v3x", ".v3", "emb.v-1",
                           "emb.v3.crc32c", "emb.v9223372036854775808", ""})
    EXPECT_FALSE(SplitVersion(name)) << name;
}

TEST(ArrayVersionsTest, VersionsAreShownAsUsersWriteThem) {
  EXPECT_EQ(ShownName("emb.v2"), "emb@2");
  EXPECT_EQ(ShownName("a.v1.v23"), "a.v1@23");
  EXPECT_EQ(ShownName("emb.v2.crc32c"), "emb@2.crc32c");
  EXPECT_EQ(ShownName("emb.v2.stale"), "emb@2.stale");
  EXPECT_EQ(ShownName("emb.v2.stale.crc32c"), "emb@2.stale.crc32c");
  for (const char* name : {"emb", "emb.crc32c", "emb.stale", "emb.v0", "emb.v3x", ""})
    EXPECT_EQ(ShownName(name), name);
}

TEST(ArrayVersionsTest, WhatIsShownFindsWhatIsStored) {
  Manifest manifest = VersionedManifest();
  for (const char* name : {"emb.v2.stale", "emb.v9.stale", "emb.v9.stale.crc32c"}) {
    ArrayEntry marks;
    marks.name = name;
    manifest.arrays.push_back(marks);
  }
  std::sort(manifest.arrays.begin(), manifest.arrays.end(),
            [](const ArrayEntry& a, const ArrayEntry& b) { return a.name < b.name; });
  for (const ArrayEntry& array : manifest.arrays)
    EXPECT_EQ(NameOf(manifest, ShownName(array.name)), array.name);
  EXPECT_EQ(NameOf(manifest, "emb.stale"), "emb.v9.stale");
  EXPECT_EQ(NameOf(manifest, "emb@10.stale"), "");
}

TEST(ArrayVersionsTest, ReferencesAreParsed) {
  for (const char* text : {"emb", "emb@3", "emb@live", "emb@latest", "emb.v3@x-1"})
    EXPECT_OK(ParseArrayReference(text));
  for (const char* text : {"", "@3", "emb@", "emb@0", "emb@03", "emb@a@b", "e mb", "../x", "emb@.x",
                           "emb@99999999999999999999"})
    EXPECT_STATUS(ParseArrayReference(text), kInvalidArgument);
}

TEST(ArrayVersionsTest, ReferencesFindTheirVersion) {
  Manifest manifest = VersionedManifest();
  EXPECT_THAT(VersionsOf(manifest, "emb"), ElementsAre(2, 9, 10));
  EXPECT_EQ(NameOf(manifest, "emb"), "emb.v9");
  EXPECT_EQ(NameOf(manifest, "emb@live"), "emb.v9");
  EXPECT_EQ(NameOf(manifest, "emb@best"), "emb.v2");
  EXPECT_EQ(NameOf(manifest, "emb@latest"), "emb.v10");
  EXPECT_EQ(NameOf(manifest, "emb@10"), "emb.v10");
  EXPECT_EQ(NameOf(manifest, "emb.v2"), "emb.v2");
  EXPECT_EQ(NameOf(manifest, "emb.crc32c"), "emb.v9.crc32c");
  EXPECT_EQ(NameOf(manifest, "emb@2.crc32c"), "");
  EXPECT_EQ(NameOf(manifest, "feat"), "feat");
  EXPECT_EQ(NameOf(manifest, "feat@latest"), "feat");
  EXPECT_EQ(NameOf(manifest, "x"), "x.v1");
  for (const char* none : {"emb@3", "emb@other", "feat@1", "feat@live", "em", "x@live", "", "@"})
    EXPECT_EQ(NameOf(manifest, none), "") << none;
}

TEST(ArrayVersionsTest, SeriesSurviveEncoding) {
  const Manifest manifest = VersionedManifest();
  const auto bytes = EncodeManifest(manifest, FixedStoreId());
  const auto decoded = DecodeManifest(bytes, FixedStoreId());
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->series, manifest.series);
  EXPECT_EQ(EncodeManifest(*decoded, FixedStoreId()), bytes);
}

template <typename Change>
void ExpectRefused(Change change, std::string_view why) {
  Manifest manifest = VersionedManifest();
  change(manifest.series);
  const auto decoded = DecodeManifest(EncodeManifest(manifest, FixedStoreId()), FixedStoreId());
  EXPECT_STATUS(decoded, kCorruption);
  const std::string message = decoded ? "" : decoded.error().message();
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

TEST(ArrayVersionsTest, BadSeriesAreRefused) {
  using Series = std::vector<ArraySeries>;
  ExpectRefused([](Series& s) { std::swap(s[0], s[1]); }, "sorted");
  ExpectRefused([](Series& s) { s[1] = s[0]; }, "unique");
  ExpectRefused([](Series& s) { s[0].name = "a/b"; }, "series");
  ExpectRefused([](Series& s) { s[1].last_version = 0; }, "last version");
  ExpectRefused([](Series& s) { s[0].aliases[0].name = "12"; }, "alias");
  ExpectRefused([](Series& s) { s[0].aliases[0].name = "latest"; }, "alias");
  ExpectRefused([](Series& s) { s[0].aliases[0].name = "zzz"; }, "sorted");
  ExpectRefused([](Series& s) { s[0].aliases[0].history = {}; }, "alias");
  ExpectRefused([](Series& s) { s[0].aliases[0].history = {3}; }, "version 3");
  ExpectRefused([](Series& s) { s[0].aliases[0].history.assign(17, 2); }, "history");
}

TEST(ArrayVersionsTest, RowsGivenIsRead) {
  ArrayEntry entry =
      MakeEntry("x", 10, 2, DataType::kFloat32, ArrayLayout::kRow, CodecKind::kRaw, 128);
  EXPECT_EQ(RowsGiven(entry), 10U);
  for (const auto& [text, rows] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"7", 7}, {"0", 0}, {"99", 10}, {"x", 10}, {"", 10}, {"7 ", 10}}) {
    entry.attributes = {{std::string(kRowsGivenAttribute), text}};
    EXPECT_EQ(RowsGiven(entry), rows) << text;
  }
}

// Every function that creates an array rejects the names that are reserved for the store.
TEST(ArrayRulesTest, NamesThatTheStoreGivesAreRefused) {
  for (const char* name :
       {"x", "emb", "rows", "edge", "edge_p", "edge_pagerank", "vertex_ids", "vertex_id_2", "zarr",
        "x.v", "x.v01", "x.vec", "x.stale.y", "a.b", "label", "split"})
    EXPECT_TRUE(CheckNewArrayName(name).ok()) << name;
  EXPECT_OK(CheckNewArrayName(std::string(kMaxNewArrayNameBytes, 'x')));
  for (const char* name : {"",          ".",           "..",          "a/b",
                           "../x",      "/x",          "a b",         "a@1",
                           "a\nb",      "a\x1b[31m",   "\xc3\xa4",    "zarr.json",
                           "vertex_id", "vertex_id__", "external_id", "external_id_",
                           "row",       "edge_p0003",  "x.v1",        "x.v9223372036854775807",
                           "x.crc32c",  "x.stale",     "x.v2.stale"})
    EXPECT_EQ(CheckNewArrayName(name).code(), StatusCode::kInvalidArgument) << name;
  EXPECT_STATUS(CheckNewArrayName(std::string(kMaxNewArrayNameBytes + 1, 'x')), kInvalidArgument);
  EXPECT_STATUS(CheckNewArrayName(std::string_view("a\0b", 3)), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
