#include "index/input/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "storage/base/half.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::array kAll = {DataType::kBool,    DataType::kInt8,    DataType::kInt16,
                             DataType::kInt32,   DataType::kInt64,   DataType::kUint8,
                             DataType::kUint32,  DataType::kFloat16, DataType::kBfloat16,
                             DataType::kFloat32, DataType::kFloat64};

template <typename T>
long double Loaded(std::span<const std::byte> raw) {
  T value;
  std::memcpy(&value, raw.data(), sizeof(value));
  return static_cast<long double>(value);
}

/// Returns an element as a long double, which holds all of them exactly.
long double ValueOf(DataType dtype, std::span<const std::byte> raw) {
  switch (dtype) {
    case DataType::kInt8:
      return Loaded<std::int8_t>(raw);
    case DataType::kInt16:
      return Loaded<std::int16_t>(raw);
    case DataType::kInt32:
      return Loaded<std::int32_t>(raw);
    case DataType::kInt64:
      return Loaded<std::int64_t>(raw);
    case DataType::kUint32:
      return Loaded<std::uint32_t>(raw);
    case DataType::kFloat32:
      return Loaded<float>(raw);
    case DataType::kFloat64:
      return Loaded<double>(raw);
    case DataType::kFloat16:
      return HalfToFloat(static_cast<std::uint16_t>(Loaded<std::uint16_t>(raw)));
    case DataType::kBfloat16:
      return BfloatToFloat(static_cast<std::uint16_t>(Loaded<std::uint16_t>(raw)));
    default:
      return Loaded<std::uint8_t>(raw);
  }
}

std::vector<std::byte> RandomElement(DataType dtype, std::mt19937_64& random) {
  std::vector<std::byte> raw(DataTypeBytes(dtype));
  std::uint64_t bits = random();
  // Small integers and their neighbours are as likely as any others.
  if (random() % 2 == 0 && !IsFloat(dtype)) bits >>= random() % 64;
  if (dtype == DataType::kBool) bits &= 1;
  std::memcpy(raw.data(), &bits, raw.size());
  return raw;
}

// A conversion keeps the value, or refuses it; only a float that becomes a narrower float may be
// rounded, and then to the nearest.
TEST(ConvertTest, ValuesAreKeptOrRefused) {
  std::mt19937_64 random(testing::TestSeed());
  for (const DataType from : kAll) {
    for (const DataType to : kAll) {
      EXPECT_EQ(CanConvert(from, to), !IsFloat(from) || IsFloat(to));
      if (!CanConvert(from, to)) continue;
      for (int i = 0; i < 2000; ++i) {
        const auto in = RandomElement(from, random);
        std::vector<std::byte> out(DataTypeBytes(to));
        const auto refused = ConvertElements(from, in, to, out);
        const long double value = ValueOf(from, in);
        const long double stored = ValueOf(to, out);
        if (refused) {
          EXPECT_FALSE(from == to);
          continue;
        }
        if (std::isnan(value)) {
          ASSERT_TRUE(std::isnan(stored));
        } else if (!IsFloat(from) || DataTypeBytes(from) < DataTypeBytes(to) || std::isinf(value) ||
                   from == to) {
          ASSERT_EQ(stored, value) << DataTypeName(from) << " to " << DataTypeName(to);
        } else {
          ASSERT_TRUE(std::isfinite(stored));
        }
      }
    }
  }
}

// Integers are refused exactly if the type has no such value, or if it is a float type that does
// not hold every integer up to there.
TEST(ConvertTest, IntegersAreRefusedOnlyIfTheyDoNotFit) {
  struct Limit {
    DataType type;
    std::int64_t least;
    std::int64_t most;
  };
  for (const Limit& limit :
       {Limit{DataType::kBool, 0, 1}, Limit{DataType::kInt8, -128, 127},
        Limit{DataType::kInt16, -32768, 32767}, Limit{DataType::kUint8, 0, 255},
        Limit{DataType::kUint32, 0, 4294967295}, Limit{DataType::kBfloat16, -256, 256},
        Limit{DataType::kFloat16, -2048, 2048}, Limit{DataType::kFloat32, -(1 << 24), 1 << 24},
        Limit{DataType::kFloat64, -(std::int64_t{1} << 53), std::int64_t{1} << 53}}) {
    std::array<std::byte, 8> out{};
    for (const auto& [value, fits] :
         {std::pair(limit.least, true), std::pair(limit.most, true),
          std::pair(limit.least - 1, false), std::pair(limit.most + 1, false)}) {
      EXPECT_EQ(
          !ConvertElements(DataType::kInt64, std::as_bytes(std::span(&value, 1)), limit.type, out),
          fits)
          << value << " as " << DataTypeName(limit.type);
      if (fits) {
        EXPECT_EQ(ValueOf(limit.type, out), value);
      }
    }
  }
}

TEST(ConvertTest, ABoolIsZeroOrOne) {
  const std::array<std::uint8_t, 3> bytes = {0, 1, 2};
  std::array<std::uint8_t, 3> out{};
  EXPECT_EQ(ConvertElements(DataType::kBool, std::as_bytes(std::span(bytes)), DataType::kBool,
                            std::as_writable_bytes(std::span(out))),
            2U);
}

// A float64 between two neighbours of a narrow type goes to the nearer one, without a detour over
// float32: just above the middle it is rounded up, though the nearest float32 is the middle itself.
TEST(ConvertTest, Float64IsRoundedOnce) {
  const auto narrow = [](double value, DataType to) {
    std::uint16_t bits = 0;
    EXPECT_FALSE(ConvertElements(DataType::kFloat64, std::as_bytes(std::span(&value, 1)), to,
                                 std::as_writable_bytes(std::span(&bits, 1))));
    return bits;
  };
  const double half_middle = 1 + 0x1p-11;
  EXPECT_EQ(narrow(half_middle, DataType::kFloat16), 0x3C00);
  EXPECT_EQ(narrow(half_middle + 0x1p-50, DataType::kFloat16), 0x3C01);
  EXPECT_EQ(narrow(half_middle - 0x1p-50, DataType::kFloat16), 0x3C00);
  const double bfloat_middle = 1 + 0x1p-8;
  EXPECT_EQ(narrow(bfloat_middle, DataType::kBfloat16), 0x3F80);
  EXPECT_EQ(narrow(bfloat_middle + 0x1p-50, DataType::kBfloat16), 0x3F81);
  EXPECT_EQ(narrow(-bfloat_middle - 0x1p-50, DataType::kBfloat16), 0xBF81);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(narrow(infinity, DataType::kBfloat16), 0x7F80);
}

// Every bfloat16 is unchanged by a conversion to float and back; every float goes to the nearest,
// ties to even, which is compared with arithmetic on double.
TEST(ConvertTest, Bfloat16IsTheUpperHalfOfAFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = BfloatToFloat(half);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value), bits << 16);
    if (!std::isnan(value)) {
      ASSERT_EQ(FloatToBfloat(value), half);
    } else {
      ASSERT_TRUE(std::isnan(BfloatToFloat(FloatToBfloat(value))));
    }
  }
  std::mt19937 random(static_cast<std::uint32_t>(testing::TestSeed()));
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const std::uint16_t bits = FloatToBfloat(value);
    const float stored = BfloatToFloat(bits);
    if (std::isinf(stored)) continue;
    const double error = std::fabs(double{stored} - double{value});
    for (const int step : {-1, 1}) {
      const float other = BfloatToFloat(static_cast<std::uint16_t>(bits + step));
      if (!std::isfinite(other) || std::signbit(other) != std::signbit(stored)) continue;
      const double distance = std::fabs(double{other} - double{value});
      ASSERT_TRUE(error < distance || (error == distance && bits % 2 == 0)) << value;
    }
  }
}

}  // namespace
}  // namespace rhizome
