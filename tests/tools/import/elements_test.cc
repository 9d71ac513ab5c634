#include "tools/import/elements.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace rhizome {
namespace {

template <typename T, std::size_t kCount>
std::span<const std::byte> Raw(const std::array<T, kCount>& elements) {
  return std::as_bytes(std::span(elements));
}

// IEEE binary16 values computed by hand: zero, smallest subnormal, smallest normal, 1, -2, largest.
TEST(ElementsTest, HalvesBecomeTheFloatsTheyStandFor) {
  const std::array<std::uint16_t, 6> halves = {0x0000, 0x0001, 0x0400, 0x3C00, 0xC000, 0x7BFF};
  std::array<float, 6> floats{};
  ToFloats(DataType::kFloat16, Raw(halves), floats);
  EXPECT_EQ(floats, (std::array<float, 6>{0, 0x1p-24F, 0x1p-14F, 1, -2, 65504}));
}

TEST(ElementsTest, HalfInfinityAndNanStaySo) {
  const std::array<std::uint16_t, 2> halves = {0xFC00, 0x7E00};
  std::array<float, 2> floats{};
  ToFloats(DataType::kFloat16, Raw(halves), floats);
  EXPECT_EQ(floats[0], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(floats[1]));
}

TEST(ElementsTest, JsonKeepsIntegersExactAndFloatsShort) {
  EXPECT_EQ(ToJson(DataType::kInt64, Raw(std::array<std::int64_t, 1>{INT64_MIN})).dump(),
            "[-9223372036854775808]");
  EXPECT_EQ(ToJson(DataType::kUint32, Raw(std::array<std::uint32_t, 1>{4294967295U})).dump(),
            "[4294967295]");
  EXPECT_EQ(ToJson(DataType::kUint8, Raw(std::array<std::uint8_t, 2>{0, 255})).dump(), "[0,255]");
  EXPECT_EQ(ToJson(DataType::kFloat32, Raw(std::array<float, 2>{0.1F, -2})).dump(), "[0.1,-2.0]");
}

TEST(ElementsTest, EveryFloatReadsBackToTheSameValue) {
  for (const std::uint32_t bits : {1U, 0x007FFFFFU, 0x00800000U, 0x3DCCCCCDU, 0x7F7FFFFFU}) {
    const float value = std::bit_cast<float>(bits);
    const Json json = ToJson(DataType::kFloat32, Raw(std::array<float, 1>{value}));
    EXPECT_EQ(static_cast<float>(json[0].get<double>()), value) << bits;
  }
}

TEST(ElementsTest, InfinitiesAndNanHaveNames) {
  const std::array<std::uint32_t, 5> floats = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000,
                                               0x7F800001};
  EXPECT_EQ(ToJson(DataType::kFloat32, Raw(floats)).dump(),
            R"json(["Infinity","-Infinity","NaN","NaN(0xffc00000)","NaN(0x7f800001)"])json");
  const std::array<std::uint16_t, 4> halves = {0x7C00, 0xFC00, 0x7E00, 0x7C01};
  EXPECT_EQ(ToJson(DataType::kFloat16, Raw(halves)).dump(),
            R"json(["Infinity","-Infinity","NaN","NaN(0x7c01)"])json");
}

TEST(ElementsTest, EveryHalfReadsBackFromJsonBitByBit) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const std::array<std::uint16_t, 1> half = {static_cast<std::uint16_t>(bits)};
    std::array<std::uint16_t, 1> back{};
    const Json json = Json::parse(ToJson(DataType::kFloat16, Raw(half)).dump());
    ASSERT_TRUE(
        ParseElementJson(DataType::kFloat16, json[0], std::as_writable_bytes(std::span(back))))
        << json;
    ASSERT_EQ(back, half) << json;
  }
}

TEST(ElementsTest, EveryKindOfFloatReadsBackFromJsonBitByBit) {
  // All exponents, with mantissas at the ends and in the middle of their range; both signs.
  for (std::uint32_t high = 0; high < 512; ++high) {
    for (const std::uint32_t mantissa : {0U, 1U, 0x2AAAAAU, 0x400000U, 0x400001U, 0x7FFFFFU}) {
      const std::array<std::uint32_t, 1> bits = {high << 23 | mantissa};
      std::array<std::uint32_t, 1> back{};
      const Json json = Json::parse(ToJson(DataType::kFloat32, Raw(bits)).dump());
      ASSERT_TRUE(
          ParseElementJson(DataType::kFloat32, json[0], std::as_writable_bytes(std::span(back))))
          << json;
      ASSERT_EQ(back, bits) << json;
    }
  }
}

TEST(ElementsTest, EveryBfloat16ReadsBackFromJsonBitByBit) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const std::array<std::uint16_t, 1> value = {static_cast<std::uint16_t>(bits)};
    std::array<std::uint16_t, 1> back{};
    const Json json = Json::parse(ToJson(DataType::kBfloat16, Raw(value)).dump());
    ASSERT_TRUE(
        ParseElementJson(DataType::kBfloat16, json[0], std::as_writable_bytes(std::span(back))))
        << json;
    ASSERT_EQ(back, value) << json;
  }
}

TEST(ElementsTest, Float64ReadsBackFromJsonBitByBit) {
  for (std::uint64_t high = 0; high < 4096; ++high) {
    for (const std::uint64_t mantissa :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x5555555555555},
          std::uint64_t{1} << 51, (std::uint64_t{1} << 52) - 1}) {
      const std::array<std::uint64_t, 1> bits = {high << 52 | mantissa};
      std::array<std::uint64_t, 1> back{};
      const Json json = Json::parse(ToJson(DataType::kFloat64, Raw(bits)).dump());
      ASSERT_TRUE(
          ParseElementJson(DataType::kFloat64, json[0], std::as_writable_bytes(std::span(back))))
          << json;
      ASSERT_EQ(back, bits) << json;
    }
  }
}

/// Describes an array of this dtype with attributes.
ElementType Typed(DataType dtype, std::vector<std::pair<std::string, std::string>> attributes) {
  ArrayEntry entry;
  entry.dtype = dtype;
  entry.attributes = std::move(attributes);
  return ElementType(entry);
}

// Each value in JSON and as text, which read back to the same element.
TEST(ElementsTest, BoolsTimesAndNullsHaveTheirOwnForms) {
  struct Case {
    ElementType type;
    std::int64_t value;
    const char* json;
    const char* text;
  };
  const ElementType nulls = Typed(DataType::kInt64, {{"null", "-9223372036854775808"}});
  const ElementType times = Typed(DataType::kInt64, {{"null", "-1"}, {"type", "timestamp"}});
  const ElementType bools = Typed(DataType::kInt64, {{"null", "-1"}, {"type", "bool"}});
  for (const Case& c :
       {Case{nulls, INT64_MIN, "null", ""}, Case{nulls, -1, "-1", "-1"},
        Case{times, 1'000'001, "\"1970-01-01T00:00:01.000001Z\"", "1970-01-01T00:00:01.000001Z"},
        Case{times, -1, "null", ""},
        Case{times, INT64_MAX, "9223372036854775807", "9223372036854775807"},
        Case{bools, 1, "true", "true"}, Case{bools, 0, "false", "false"},
        Case{bools, -1, "null", ""}, Case{bools, 7, "7", "7"}}) {
    const std::array<std::int64_t, 1> value = {c.value};
    EXPECT_EQ(ToJson(c.type, Raw(value))[0].dump(), c.json);
    EXPECT_EQ(ElementText(c.type, Raw(value)), c.text);
    std::array<std::int64_t, 1> back = {99};
    const auto out = std::as_writable_bytes(std::span(back));
    EXPECT_TRUE(ParseElementJson(c.type, Json::parse(c.json), out)) << c.json;
    EXPECT_EQ(back, value);
    back = {99};
    EXPECT_TRUE(ParseElement(c.type, c.text, out)) << c.text;
    EXPECT_EQ(back, value);
  }
  const std::array<std::uint8_t, 2> flags = {0, 1};
  EXPECT_EQ(ToJson(DataType::kBool, Raw(flags)).dump(), "[false,true]");
}

TEST(ElementsTest, TheValueForNullIsNoValue) {
  const ElementType nulls = Typed(DataType::kInt16, {{"null", "-5"}});
  std::array<std::int16_t, 1> out{};
  const auto bytes = std::as_writable_bytes(std::span(out));
  EXPECT_FALSE(ParseElement(nulls, "-5", bytes));
  EXPECT_FALSE(ParseElementJson(nulls, -5, bytes));
  EXPECT_FALSE(ParseElement(nulls, "32768", bytes));
  EXPECT_TRUE(ParseElement(nulls, "NA", bytes));
  EXPECT_EQ(out[0], -5);
  EXPECT_FALSE(ParseElement(DataType::kInt16, "", bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kBool, 2, bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kInt16, true, bytes));
}

TEST(ElementsTest, FloatsAreTextAsOthersWriteThem) {
  const std::array<double, 5> values = {0.1, std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(), NAN, 1e-180};
  const std::array<const char*, 5> texts = {"0.1", "inf", "-inf", "nan", "1e-180"};
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(ElementText(DataType::kFloat64, Raw(values).subspan(8 * i, 8)), texts[i]);
}

TEST(ElementsTest, BareNamesOfNonFiniteNumbersAreQuoted) {
  EXPECT_EQ(QuoteNonFinite(R"({"a": [NaN, -Infinity,Infinity], "NaN": "Infinity \"NaN"})"),
            R"({"a": ["NaN", "-Infinity","Infinity"], "NaN": "Infinity \"NaN"})");
  EXPECT_EQ(QuoteNonFinite(R"(["\\", NaN, "\\\"", NaN])"), R"(["\\", "NaN", "\\\"", "NaN"])");
  EXPECT_EQ(QuoteNonFinite("NaN\"Na\\"), "\"NaN\"\"Na\\");
}

TEST(ElementsTest, OtherNamesAreRefused) {
  std::array<std::uint32_t, 2> out{};
  const auto bytes = std::as_writable_bytes(std::span(out));
  for (const char* name : {"nan", "inf", "", "NaN ", "NaN()", "NaN(0x)", "NaN(0x7fc00000", "1.5",
                           "NaN(0x7f800000)", "NaN(0x3f800000)", "NaN(0x7fc0000)", "+Infinity",
                           "NaN(0x07fc00001)", "NaN(0x7e01)", "NaN(0x-7fc0000)"})
    EXPECT_FALSE(ParseElementJson(DataType::kFloat32, name, bytes)) << name;
  EXPECT_FALSE(ParseElementJson(DataType::kInt64, nullptr, bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kInt64, "NaN", bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kFloat16, "NaN(0x7fc00001)", bytes));
}

}  // namespace
}  // namespace rhizome
