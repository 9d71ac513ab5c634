#include "elements.h"

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

// Hand-computed IEEE binary16 values: zero, smallest subnormal, smallest normal, 1, -2, largest.
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
  EXPECT_EQ(ToJson(DataType::kFloat32, Raw(std::array<float, 3>{0.1F, -2, NAN})).dump(),
            "[0.1,-2.0,null]");
}

TEST(ElementsTest, EveryFloatReadsBackToTheSameValue) {
  for (const std::uint32_t bits : {1U, 0x007FFFFFU, 0x00800000U, 0x3DCCCCCDU, 0x7F7FFFFFU}) {
    const float value = std::bit_cast<float>(bits);
    const Json json = ToJson(DataType::kFloat32, Raw(std::array<float, 1>{value}));
    EXPECT_EQ(static_cast<float>(json[0].get<double>()), value) << bits;
  }
}

}  // namespace
}  // namespace rhizome
