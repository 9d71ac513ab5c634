#include "index/input/value_column.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "index/input/number.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Fields = std::vector<std::string>;
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// A column that was read, or the reason why a field was refused.
struct ColumnRead {
  ValueColumn column;
  ValueList list;
  std::string reason;

  template <typename T>
  std::vector<T> values() const {
    std::vector<T> out(list.size());
    EXPECT_EQ(list.bytes().size(), out.size() * sizeof(T));
    std::memcpy(out.data(), list.bytes().data(), list.bytes().size());
    return out;
  }
};

ColumnRead ReadColumn(const Fields& fields, const char* type = nullptr) {
  ColumnRead read{
      ValueColumn(type == nullptr ? std::nullopt : ParseColumnType(type)), ValueList(), {}};
  for (const std::string& field : fields) {
    if (const auto reason = read.column.Stage(field, "c")) {
      read.reason = *reason;
      continue;  // a refused field leaves the column as it was
    }
    read.column.Keep(read.list);
  }
  read.column.Finish(read.list);
  return read;
}

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(ValueColumnTest, IntegersStayInt64) {
  const ColumnRead read = ReadColumn({"1", "-7", "9223372036854775807", "-9223372036854775808"});
  EXPECT_EQ(read.list.dtype(), DataType::kInt64);
  EXPECT_EQ(read.values<std::int64_t>(), (std::vector<std::int64_t>{1, -7, kMax, kMin}));
  EXPECT_TRUE(read.column.Attributes(DataType::kInt64).empty());
}

TEST(ValueColumnTest, IntegersWithNullsStayInt64) {
  for (const char* null : {"", "null", "NULL", "NA", "nan", "NaN", "-nan"}) {
    const ColumnRead read = ReadColumn({"1600000001", null, "1600000003"});
    EXPECT_EQ(read.reason, "");
    EXPECT_EQ(read.values<std::int64_t>(),
              (std::vector<std::int64_t>{1600000001, kMin, 1600000003}));
    EXPECT_EQ(read.column.Attributes(DataType::kInt64),
              (Attributes{{"null", "-9223372036854775808"}}));
  }
}

// The value that means null is one that no element has, whether the elements are before it or
// after.
TEST(ValueColumnTest, TheValueForNullOccursNowhere) {
  const std::string min = std::to_string(kMin);
  const std::string next = std::to_string(kMin + 1);
  for (const Fields& fields :
       {Fields{"", min, next, ""}, Fields{min, "", next, ""}, Fields{next, min, "", ""}}) {
    const ColumnRead read = ReadColumn(fields);
    const auto values = read.values<std::int64_t>();
    EXPECT_EQ(read.column.null(), kMin + 2);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::int64_t expected = fields[i].empty() ? kMin + 2 : std::stoll(fields[i]);
      EXPECT_EQ(values[i], expected) << i;
    }
  }
}

TEST(ValueColumnTest, ShortDecimalsAreFloat32) {
  const ColumnRead read =
      ReadColumn({"0.1", "3", "-2.5e-3", "1e10", "inf", "-Infinity", "", "nan"});
  EXPECT_EQ(read.reason, "");
  ASSERT_EQ(read.list.dtype(), DataType::kFloat32);
  const auto values = read.values<float>();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::array<float, 6> expected = {0.1F, 3, -2.5e-3F, 1e10F, kInf, -kInf};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values[i], expected[i]);
  EXPECT_TRUE(std::isnan(values[6]) && std::isnan(values[7]));
  EXPECT_TRUE(read.column.Attributes(DataType::kFloat32).empty());
}

// One value that float32 would change makes the whole column float64; values before it are those
// that float64 parses from their text.
TEST(ValueColumnTest, ADecimalThatFloat32WouldChangeMakesFloat64) {
  for (const char* wide : {"0.123456789", "1e-180", "1e300", "16777217.5", "1600000001.0"}) {
    const ColumnRead read = ReadColumn({"0.1", "", "2", wide, "0.3"});
    EXPECT_EQ(read.reason, "");
    ASSERT_EQ(read.list.dtype(), DataType::kFloat64) << wide;
    const auto values = read.values<double>();
    EXPECT_EQ(values[0], 0.1);
    EXPECT_TRUE(std::isnan(values[1]));
    EXPECT_EQ(values[2], 2);
    EXPECT_EQ(values[3], std::strtod(wide, nullptr));
    EXPECT_EQ(values[4], 0.3);
  }
}

TEST(ValueColumnTest, IntegersBeforeADecimalStayExact) {
  const ColumnRead read = ReadColumn({"16777217", "0.5"});
  EXPECT_EQ(read.values<double>(), (std::vector<double>{16777217, 0.5}));
  const ColumnRead refused = ReadColumn({"9007199254740993", "0.5", "7"});
  EXPECT_NE(refused.reason.find("float64 would round"), std::string::npos) << refused.reason;
  EXPECT_EQ(refused.values<std::int64_t>(), (std::vector<std::int64_t>{9007199254740993, 7}));
  const ColumnRead after = ReadColumn({"0.5", "9007199254740993"});
  EXPECT_NE(after.reason.find("float64 would round"), std::string::npos) << after.reason;
}

TEST(ValueColumnTest, NumbersThatNoTypeHoldsAreRefused) {
  for (const char* field : {"9223372036854775808", "-9223372036854775809", "1e400", "1e-400",
                            "0x10", "1,5", "abc", "1 2", "--1"}) {
    const ColumnRead read = ReadColumn({field});
    EXPECT_NE(read.reason.find(field), std::string::npos) << field;
    EXPECT_EQ(read.list.size(), 0U);
  }
}

TEST(ValueColumnTest, BoolsAndTimesHaveTheirOwnTypes) {
  const ColumnRead bools = ReadColumn({"true", "False", "TRUE"});
  EXPECT_EQ(bools.column.dtype(), DataType::kBool);
  EXPECT_EQ(bools.values<std::int64_t>(), (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_TRUE(bools.column.Attributes(DataType::kBool).empty());
  EXPECT_EQ(bools.column.Attributes(DataType::kInt64), (Attributes{{"type", "bool"}}));
  const ColumnRead nulls = ReadColumn({"", "true", "NA", "false"});
  EXPECT_EQ(nulls.values<std::int64_t>(), (std::vector<std::int64_t>{-1, 1, -1, 0}));
  EXPECT_EQ(nulls.column.Attributes(DataType::kInt8),
            (Attributes{{"null", "-1"}, {"type", "bool"}}));
  const ColumnRead times = ReadColumn({"1970-01-02", "1970-01-01T00:00:00.000001Z", ""});
  EXPECT_EQ(times.values<std::int64_t>(), (std::vector<std::int64_t>{86'400'000'000, 1, kMin}));
  EXPECT_EQ(times.column.Attributes(DataType::kInt64),
            (Attributes{{"null", std::to_string(kMin)}, {"type", "timestamp"}}));
}

TEST(ValueColumnTest, NotesSayWhatIsNotExpected) {
  using Notes = std::vector<std::string>;
  EXPECT_EQ(ReadColumn({"0.1", "7"}).column.Notes("c"), Notes());
  EXPECT_EQ(ReadColumn({"0.1", "1e-180"}).column.Notes("c"),
            Notes{"the column 'c' is float64, because float32 would round '1e-180'; `types` can "
                  "make it float32"});
  EXPECT_EQ(ReadColumn({"0.1", "1e-5"}, "float64").column.Notes("c"), Notes());
  EXPECT_EQ(ReadColumn({"16777217", "0.5"}).column.Notes("c").size(), 1U);
  EXPECT_EQ(ReadColumn({"7", ""}).column.Notes("c"),
            Notes{"the column 'c' has nulls; -9223372036854775808 means null in its array"});
  EXPECT_EQ(ReadColumn({"true", ""}).column.Notes("c"), Notes());
}

TEST(ValueColumnTest, KindsDoNotMix) {
  for (const Fields& fields : {Fields{"1", "true"}, Fields{"true", "1"}, Fields{"2024-05-01", "7"},
                               Fields{"0.5", "2024-05-01"}, Fields{"false", "1970-01-01"}})
    EXPECT_NE(ReadColumn(fields).reason.find("in the lines before"), std::string::npos);
}

TEST(ValueColumnTest, AColumnOfNullsIsFloat32) {
  const ColumnRead read = ReadColumn({"", "NA"});
  EXPECT_EQ(read.list.dtype(), DataType::kFloat32);
  EXPECT_EQ(read.column.dtype(), DataType::kFloat32);
  EXPECT_EQ(read.list.size(), 2U);
  EXPECT_TRUE(std::isnan(read.values<float>()[1]));
}

TEST(ValueColumnTest, GivenTypesHoldOrRefuse) {
  EXPECT_EQ(ReadColumn({"3.0", "-7", ""}, "int64").values<std::int64_t>(),
            (std::vector<std::int64_t>{3, -7, kMin}));
  EXPECT_EQ(ReadColumn({"127", "", "-128"}, "int8").column.null(), -127);
  EXPECT_EQ(ReadColumn({"255", ""}, "uint8").column.null(), 254);
  EXPECT_EQ(ReadColumn({"1", "true", "0"}, "bool").values<std::int64_t>(),
            (std::vector<std::int64_t>{1, 1, 0}));
  EXPECT_EQ(ReadColumn({"0.123456789", "1"}, "float32").values<float>(),
            (std::vector<float>{0.123456789F, 1}));
  EXPECT_EQ(ReadColumn({"1", "0.5"}, "float64").values<double>(), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(ReadColumn({"1970-01-01T00:00:01"}, "timestamp").values<std::int64_t>(),
            (std::vector<std::int64_t>{1'000'000}));
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"3.5", "int64"},        {"128", "int8"},      {"-1", "uint8"},
      {"2", "bool"},           {"1e300", "float32"}, {"1e-180", "float32"},
      {"true", "int64"},       {"7", "timestamp"},   {"2024-05-01", "int64"},
      {"16777217", "float32"}, {"x", "float64"},     {"4294967296", "uint32"}};
  for (const auto& [field, type] : refused) {
    const ColumnRead read = ReadColumn({field}, type);
    EXPECT_NE(read.reason.find(field), std::string::npos) << field << " as " << type;
    EXPECT_EQ(read.list.size(), 0U);
  }
}

TEST(ValueColumnTest, ATypeWhoseValuesAllOccurHasNoNull) {
  Fields fields;
  for (int i = -128; i < 128; ++i) fields.push_back(std::to_string(i));
  fields.emplace_back();
  EXPECT_NE(ReadColumn(fields, "int8").reason.find("wider type"), std::string::npos);
  std::swap(fields.front(), fields.back());
  EXPECT_NE(ReadColumn(fields, "int8").reason.find("wider type"), std::string::npos);
}

/// Writes a number as text, in one of the ways in which programs do.
std::string RandomNumber(std::mt19937_64& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const double value =
      std::ldexp(static_cast<double>(random() >> 11), pick(200) - 150) * (pick(2) == 0 ? 1 : -1);
  constexpr std::array kForms = {"%.3g", "%.6g", "%.9g", "%.17g", "%.2f", "%e"};
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), kForms[static_cast<std::size_t>(pick(kForms.size()))],
                pick(3) == 0 ? std::round(value) : value);
  return text.data();
}

// In any order of the numbers, the column holds what strtod makes of each: as float32 only if
// that is the number, or prints it.
TEST(ValueColumnTest, NoNumberChangesInAnyOrder) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    Fields fields(1 + random() % 8);
    for (std::string& field : fields) field = RandomNumber(random);
    const ColumnRead read = ReadColumn(fields);
    if (!read.reason.empty()) continue;  // integers that float64 would round
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const double expected = std::strtod(fields[i].c_str(), nullptr);
      if (read.list.dtype() == DataType::kInt64) {
        ASSERT_EQ(std::to_string(read.values<std::int64_t>()[i]), fields[i]);
      } else if (read.list.dtype() == DataType::kFloat64) {
        ASSERT_EQ(read.values<double>()[i], expected) << fields[i];
      } else {
        std::array<char, 64> shortest{};
        const float stored = read.values<float>()[i];
        if (static_cast<double>(stored) == expected) continue;
        int digits = 1;  // the shortest decimal that reads back
        do {
          std::snprintf(shortest.data(), shortest.size(), "%.*g", digits, stored);
        } while (std::strtof(shortest.data(), nullptr) != stored && ++digits < 10);
        ASSERT_EQ(std::strtod(shortest.data(), nullptr), expected) << fields[i];
      }
    }
  }
}

}  // namespace
}  // namespace rhizome
