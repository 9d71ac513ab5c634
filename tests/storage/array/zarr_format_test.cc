#include "storage/array/zarr_format.h"

#include <nlohmann/json.hpp>

#include "storage/array/codec_table.h"
#include "storage/array_fixture.h"

namespace rhizome {
namespace {

using nlohmann::json;
using testing::MakeEntry;

TEST(ZarrFormatTest, EveryTypeAndCodecReturns) {
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kInt32, DataType::kUint32, DataType::kUint8}) {
    for (const CodecEntry& codec : AllCodecs()) {
      if (!codec.published) continue;
      SCOPED_TRACE(codec.name);
      ArrayEntry entry = MakeEntry("x", 1000, 5, dtype, ArrayLayout::kChunk, codec.kind, 128);
      entry.array_id = ~std::uint64_t{0};
      entry.attributes = {{"a", "\"\\ \xC3\xA9"}, {"b", ""}};
      const auto decoded = DecodeArrayJson(EncodeArrayJson(entry), "x");
      ASSERT_OK(decoded);
      EXPECT_EQ(*decoded, entry);
      EXPECT_EQ(decoded->codec.element_bytes, DataTypeBytes(dtype));
    }
  }
}

TEST(ZarrFormatTest, EveryLevelReturnsAndNoOther) {
  for (const CodecEntry& codec : AllCodecs()) {
    SCOPED_TRACE(codec.name);
    ArrayEntry entry =
        MakeEntry("x", 10, 5, DataType::kFloat32, ArrayLayout::kChunk, codec.kind, 128);
    for (int level = 1; level <= codec.highest_level; ++level) {
      entry.codec.level = level;
      EXPECT_EQ(*DecodeArrayJson(EncodeArrayJson(entry), "x"), entry);
    }
    if (codec.highest_level == 0) continue;
    for (const int level : {-1, 0, codec.highest_level + 1}) {
      entry.codec.level = level;
      EXPECT_STATUS(DecodeArrayJson(EncodeArrayJson(entry), "x"), kCorruption);
    }
  }
}

TEST(ZarrFormatTest, TheDocumentIsWhatTheSpecificationAsksFor) {
  const auto entry =
      MakeEntry("x", 1000, 5, DataType::kFloat32, ArrayLayout::kChunk, CodecKind::kBloscLz4, 128);
  const json document = json::parse(EncodeArrayJson(entry));
  EXPECT_EQ(document["zarr_format"], 3);
  EXPECT_EQ(document["node_type"], "array");
  EXPECT_EQ(document["shape"], json({1000, 5}));
  EXPECT_EQ(document["chunk_grid"]["configuration"]["chunk_shape"], json({128, 5}));
  EXPECT_EQ(document["chunk_key_encoding"]["configuration"]["separator"], ".");
  EXPECT_EQ(document["codecs"][0]["configuration"]["endian"], "little");
  EXPECT_EQ(document["codecs"][1]["configuration"]["cname"], "lz4");
  EXPECT_EQ(document["codecs"][1]["configuration"]["typesize"], 4);
  EXPECT_EQ(document["codecs"][2]["name"], "crc32c");
  EXPECT_EQ(document["dimension_names"], json({"row", "x_dim"}));
}

// A missing chunk reads as the fill value, which must therefore not be a plausible value of a row.
TEST(ZarrFormatTest, FillValuesMarkWhatIsMissing) {
  const std::pair<DataType, json> fills[] = {
      {DataType::kFloat32, "NaN"},   {DataType::kFloat16, "NaN"},     {DataType::kInt64, INT64_MIN},
      {DataType::kInt32, INT32_MIN}, {DataType::kUint32, UINT32_MAX}, {DataType::kUint8, 255}};
  for (const auto& [dtype, fill] : fills) {
    ArrayEntry entry = MakeEntry("x", 10, 2, dtype, ArrayLayout::kRow, CodecKind::kRaw, 5);
    EXPECT_EQ(json::parse(EncodeArrayJson(entry))["fill_value"], fill);
    // Arrays of older builds are read and recognised as such.
    entry.form = ArrayForm::kZeroFill;
    EXPECT_EQ(json::parse(EncodeArrayJson(entry))["fill_value"], 0);
    const auto decoded = DecodeArrayJson(EncodeArrayJson(entry), "x");
    ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, entry);
  }
}

TEST(ZarrFormatTest, AnyChangedFieldIsCorruption) {
  const auto entry =
      MakeEntry("x", 1000, 5, DataType::kFloat32, ArrayLayout::kChunk, CodecKind::kBloscLz4, 128);
  const json good = json::parse(EncodeArrayJson(entry));
  for (const auto& [key, value] : good.items()) {
    SCOPED_TRACE(key);
    json bad = good;
    bad.erase(key);
    EXPECT_STATUS(DecodeArrayJson(bad.dump(), "x"), kCorruption);
    bad[key] = nullptr;
    EXPECT_STATUS(DecodeArrayJson(bad.dump(), "x"), kCorruption);
    bad[key] = json::array({json::array()});
    EXPECT_STATUS(DecodeArrayJson(bad.dump(), "x"), kCorruption);
  }
  const std::pair<const char*, json> changes[] = {
      {"/zarr_format", 2},
      {"/shape", {1000, 5, 1}},
      {"/shape/0", -1},
      {"/shape/0", 1e30},
      {"/chunk_grid/configuration/chunk_shape/1", 4},
      {"/chunk_grid/configuration/chunk_shape/0", 1u << 30},
      {"/data_type", "complex64"},
      {"/fill_value", 1},
      {"/codecs/1/configuration/cname", "blosclz"},
      {"/codecs/1/configuration/shuffle", "bitshuffle"},
      {"/codecs/1/configuration/clevel", 99},
      {"/codecs/0/configuration/endian", "big"},
      {"/codecs/2/name", "gzip"},
      {"/attributes/rhizome/array_id", "12x"},
      {"/attributes/rhizome/layout", "column"},
      {"/storage_transformers", {1}},
  };
  for (const auto& [pointer, value] : changes) {
    SCOPED_TRACE(pointer);
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    EXPECT_STATUS(DecodeArrayJson(bad.dump(), "x"), kCorruption);
  }
}

TEST(ZarrFormatTest, HostileTextIsRefused) {
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"),
                                  std::string("\0", 1), std::string(1 << 20, '['),
                                  std::string((1 << 20) + 1, ' '), std::string("{\"a\":\"\xFF\"}")})
    EXPECT_STATUS(DecodeArrayJson(text, "x"), kCorruption);
  const std::string deep = "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}";
  const auto refused = DecodeArrayJson(deep, "x");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("nesting"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
