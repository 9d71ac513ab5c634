#include "cache/feed/feature_decoder.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "storage/base/half.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::size_t kDecoderDim = 7;  // no multiple of the width of a kernel

ArrayEntry Entry(DataType dtype) {
  ArrayEntry entry;
  entry.name = "x";
  entry.dtype = dtype;
  entry.dim = kDecoderDim;
  return entry;
}

template <typename T>
std::span<const std::byte> Raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// Decodes rows with Decode, and each with DecodeRow, which must agree; returns the floats.
template <typename T>
std::vector<float> Decoded(const ArrayEntry& entry, const std::vector<T>& stored) {
  const auto decoder = FeatureDecoder::Create(entry, false);
  EXPECT_OK(decoder);
  if (!decoder) return {};
  EXPECT_EQ(decoder->stored_row_bytes(), kDecoderDim * sizeof(T));
  std::vector<float> floats(stored.size());
  decoder->Decode(Raw(stored), floats);
  if (decoder->takes_as_stored()) return floats;
  EXPECT_EQ(decoder->type(), DataType::kFloat32);
  EXPECT_EQ(decoder->row_bytes(), kDecoderDim * sizeof(float));
  for (std::size_t at = 0; at < stored.size(); at += kDecoderDim) {
    std::vector<float> row(kDecoderDim * std::max(sizeof(T), sizeof(float)) / sizeof(float));
    std::memcpy(row.data(), stored.data() + at, kDecoderDim * sizeof(T));
    decoder->DecodeRow(std::as_writable_bytes(std::span(row)));
    EXPECT_EQ(std::memcmp(row.data(), floats.data() + at, kDecoderDim * sizeof(float)), 0);
  }
  return floats;
}

template <typename T>
std::vector<T> RandomValues(std::mt19937_64& random) {
  std::vector<T> values(kDecoderDim * 5);
  for (T& value : values) {
    const std::uint64_t bits = random() >> random() % 64;
    std::memcpy(&value, &bits, sizeof(value));
  }
  return values;
}

/// Decodes random values of an integer type, and compares with the cast of C++.
template <typename T>
void ExpectCast(DataType dtype, std::mt19937_64& random) {
  const std::vector<T> values = RandomValues<T>(random);
  const std::vector<float> floats = Decoded(Entry(dtype), values);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(floats[i], static_cast<float>(values[i])) << DataTypeName(dtype);
}

TEST(FeatureDecoderTest, IntegersAreRoundedToTheNearestFloat) {
  std::mt19937_64 random(testing::TestSeed());
  ExpectCast<std::int64_t>(DataType::kInt64, random);
  ExpectCast<std::int32_t>(DataType::kInt32, random);
  ExpectCast<std::uint32_t>(DataType::kUint32, random);
  ExpectCast<std::int16_t>(DataType::kInt16, random);
  ExpectCast<std::int8_t>(DataType::kInt8, random);
  ExpectCast<std::uint8_t>(DataType::kUint8, random);
  const std::vector<std::uint8_t> flags = {0, 1, 1, 0, 1, 0, 1};
  EXPECT_EQ(Decoded(Entry(DataType::kBool), flags), (std::vector<float>{0, 1, 1, 0, 1, 0, 1}));
}

TEST(FeatureDecoderTest, FloatsBecomeFloat32) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> wide = {0.1, -1e-180, 1e300, -infinity, 3, 0x1p-149, 16777217};
  const std::vector<float> narrow = Decoded(Entry(DataType::kFloat64), wide);
  EXPECT_EQ(narrow, (std::vector<float>{0.1F, -0.0F, static_cast<float>(infinity),
                                        static_cast<float>(-infinity), 3, 0x1p-149F, 16777216}));
  std::vector<std::uint16_t> brain(kDecoderDim * 3);
  for (std::size_t i = 0; i < brain.size(); ++i) brain[i] = static_cast<std::uint16_t>(i * 3000);
  const std::vector<float> floats = Decoded(Entry(DataType::kBfloat16), brain);
  for (std::size_t i = 0; i < brain.size(); ++i) EXPECT_EQ(floats[i], BfloatToFloat(brain[i]));
}

TEST(FeatureDecoderTest, FloatAndHalfStayAsTheyAre) {
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16}) {
    const auto decoder = FeatureDecoder::Create(Entry(dtype), false);
    ASSERT_OK(decoder);
    EXPECT_TRUE(decoder->takes_as_stored());
    EXPECT_EQ(decoder->type(), dtype);
    const auto normalized = FeatureDecoder::Create(Entry(dtype), true);
    ASSERT_OK(normalized);
    EXPECT_EQ(normalized->type(), DataType::kFloat32);
  }
}

TEST(FeatureDecoderTest, NullsBecomeNaN) {
  ArrayEntry entry = Entry(DataType::kInt64);
  entry.attributes = {{"null", "-9223372036854775808"}};
  const std::vector<float> floats = Decoded<std::int64_t>(entry, {1, INT64_MIN, 3, -4, 0, 6, 7});
  EXPECT_TRUE(std::isnan(floats[1]));
  EXPECT_EQ(floats[2], 3);
  entry = Entry(DataType::kInt8);
  entry.attributes = {{"null", "-1"}, {"type", "bool"}};
  const std::vector<float> flags = Decoded<std::int8_t>(entry, {1, 0, -1, 1, 0, 0, 1});
  EXPECT_TRUE(std::isnan(flags[2]));
  EXPECT_EQ(flags[0], 1);
}

TEST(FeatureDecoderTest, TimesAreNoFeatures) {
  ArrayEntry entry = Entry(DataType::kInt64);
  entry.attributes = {{"type", "timestamp"}};
  const auto decoder = FeatureDecoder::Create(entry, false);
  EXPECT_STATUS(decoder, kInvalidArgument);
  for (const char* part : {"array x", "timestamp"})
    EXPECT_NE(decoder.error().message().find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace rhizome
