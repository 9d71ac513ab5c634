#include "storage/array/type_names.h"

#include "storage/array/manifest_format.h"
#include "storage/array_fixture.h"
#include "storage/base/little_endian.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(TypeNamesTest, AcceptsTextAndRefusesControlCharacters) {
  for (const std::string name :
       {"likes", "/location/country", "a::b:c", "has part", " part of ", "<isMarriedTo>", "naît_à",
        "..", ".x", "\"q\", 'r'", "100% #1", "\xF0\x9F\x8C\xB1"}) {
    SCOPED_TRACE(name);
    EXPECT_OK(CheckTypeName("type", name));
  }
  EXPECT_OK(CheckTypeName("type", std::string(512, 'x')));
  for (const std::string name :
       {"", "a\tb", "a\nb", "a\rb", "\x1B[31m", "\x7F", "a\xC2\x85z", "\xC3\x28", "\xFF"})
    EXPECT_STATUS(CheckTypeName("type", name), kInvalidArgument);
  EXPECT_STATUS(CheckTypeName("type", std::string_view("a\0b", 3)), kInvalidArgument);
  EXPECT_STATUS(CheckTypeName("type", std::string(513, 'x')), kInvalidArgument);
  EXPECT_NE(CheckTypeName("edge type", "a\tb").message().find("edge type"), std::string::npos);
}

TEST(TypeNamesTest, MessagesListOnlyTheFirstNames) {
  EXPECT_EQ(ListOfNames(std::vector<std::string>{"a", "b c"}), "a, b c");
  const std::vector<std::string> many(65536, "name");
  EXPECT_LT(ListOfNames(many).size(), 300u);
  EXPECT_NE(ListOfNames(many).find("(65536 in all)"), std::string::npos);
}

std::uint32_t VersionOf(const Manifest& manifest) {
  const auto bytes = EncodeManifest(manifest, testing::FixedStoreId());
  const auto decoded = DecodeManifest(bytes, testing::FixedStoreId());
  EXPECT_OK(decoded);
  if (!decoded) return 0;
  EXPECT_EQ(decoded->info.edge_types, manifest.info.edge_types);
  EXPECT_EQ(decoded->info.vertex_types, manifest.info.vertex_types);
  return LoadLittle<std::uint32_t>(bytes.data() + 8);
}

// Builds that know only plain names must refuse the version, and still read everything else.
TEST(TypeNamesTest, TheManifestHasVersion4OnlyWithOtherNames) {
  Manifest manifest;
  manifest.generation = 1;
  manifest.version = 1;
  manifest.info = testing::SmallInfo(3);
  manifest.info.edge_types = {"likes", "knows"};
  EXPECT_EQ(VersionOf(manifest), 1u);
  manifest.info.edge_types = {"likes", "has part"};
  EXPECT_EQ(VersionOf(manifest), 4u);
  manifest.info.edge_types = {"likes"};
  manifest.info.vertex_types = {"naît_à"};
  EXPECT_EQ(VersionOf(manifest), 4u);
  manifest.info.vertex_types = {"v"};
  manifest.info.edge_types.clear();
  for (std::size_t i = 0; i < 4096; ++i) manifest.info.edge_types.push_back(std::to_string(i));
  EXPECT_EQ(VersionOf(manifest), 1u);
  manifest.info.edge_types.emplace_back("one more");
  EXPECT_EQ(VersionOf(manifest), 4u);
  manifest.info.edge_types.back() = "4096";
  EXPECT_EQ(VersionOf(manifest), 4u);
  manifest.info.edge_types = {"likes"};
  manifest.arrays = {
      testing::MakeEntry("f", 3, 2, DataType::kBool, ArrayLayout::kChunk, CodecKind::kRaw, 128)};
  EXPECT_EQ(VersionOf(manifest), 4u);
}

}  // namespace
}  // namespace rhizome
