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

TEST(ElementsTest, OtherNamesAreRefused) {
  std::array<std::uint32_t, 2> out{};
  const auto bytes = std::as_writable_bytes(std::span(out));
  for (const char* name : {"nan", "inf", "", "NaN ", "NaN()", "NaN(0x)", "NaN(0x7fc00000", "1.5",
                           "NaN(0x7f800000)", "NaN(0x3f800000)", "NaN(0x7fc0000)", "+Infinity",
                           "NaN(0x07fc00001)", "NaN(0x7e01)", "NaN(0x-7fc0000)"})
    EXPECT_FALSE(ParseElementJson(DataType::kFloat32, name, bytes)) << name;
  EXPECT_FALSE(ParseElementJson(DataType::kFloat32, nullptr, bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kInt64, "NaN", bytes));
  EXPECT_FALSE(ParseElementJson(DataType::kFloat16, "NaN(0x7fc00001)", bytes));
}

}  // namespace
}  // namespace rhizome
