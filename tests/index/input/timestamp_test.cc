#include "index/input/timestamp.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
// 2024-05-01T00:00:00Z, as `date -d 2024-05-01Z +%s` prints it.
constexpr std::int64_t kMayFirst = 1'714'521'600 * kSecond;

TEST(TimestampTest, FormsOfIso8601AreParsed) {
  EXPECT_EQ(ParseTimestamp("1970-01-01"), 0);
  EXPECT_EQ(ParseTimestamp("2024-05-01"), kMayFirst);
  EXPECT_EQ(ParseTimestamp("2024-05-01T12:30:00Z"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("2024-05-01 12:30"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("2024-05-01t12:30:00.25z"), kMayFirst + 45'000 * kSecond + 250'000);
  EXPECT_EQ(ParseTimestamp("2024-05-01T12:30:00.123456789"), std::nullopt);
  EXPECT_EQ(ParseTimestamp("2024-05-01T12:30:00.123456000"), kMayFirst + 45'000'123'456);
  EXPECT_EQ(ParseTimestamp("2024-05-01T14:30:00+02:00"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("2024-05-01T14:30+0200"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("2024-05-01T10:00-02:30"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("2024-05-01T14:30+02"), kMayFirst + 45'000 * kSecond);
  EXPECT_EQ(ParseTimestamp("1969-12-31T23:59:59.999999Z"), -1);
  EXPECT_EQ(ParseTimestamp("2024-02-29"), kMayFirst - 62 * 86'400 * kSecond);
}

TEST(TimestampTest, OtherTextsAreRefused) {
  for (const char* text : {"",
                           "2024",
                           "2024-05",
                           "2024-5-1",
                           "24-05-01",
                           "2024-13-01",
                           "2024-00-01",
                           "2024-05-00",
                           "2024-05-32",
                           "2023-02-29",
                           "0000-01-01",
                           "2024-05-01T",
                           "2024-05-01T12",
                           "2024-05-01T24:00",
                           "2024-05-01T12:60",
                           "2024-05-01T12:30:60",
                           "2024-05-01T12:30:00.",
                           "2024-05-01T12:30:00.1x",
                           "2024-05-01T12:30:00ZZ",
                           "2024-05-01T12:30:00+",
                           "2024-05-01T12:30:00+2",
                           "2024-05-01Z",
                           "2024-05-01T12:30:00+02:",
                           "2024-05-01T12:30:00+02:60",
                           "2024/05/01",
                           "20240501",
                           "-2024-05-01",
                           "+2024-05-01",
                           " 2024-05-01",
                           "2024-05-01 ",
                           "2024-05-01  12:30"})
    EXPECT_EQ(ParseTimestamp(text), std::nullopt) << text;
}

TEST(TimestampTest, TextsReadBack) {
  EXPECT_EQ(TimestampText(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(TimestampText(-1), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(TimestampText(kMayFirst + 250'000), "2024-05-01T00:00:00.250Z");
  EXPECT_EQ(TimestampText(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(TimestampText(INT64_MAX), "9223372036854775807");
  // The first and the last time with four digits of a year, and their neighbours.
  EXPECT_EQ(TimestampText(-62'135'596'800 * kSecond), "0001-01-01T00:00:00Z");
  EXPECT_EQ(TimestampText(-62'135'596'800 * kSecond - 1), "-62135596800000001");
  EXPECT_EQ(TimestampText(253'402'300'800 * kSecond - 1), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(TimestampText(253'402'300'800 * kSecond), "253402300800000000");
  std::mt19937_64 random(testing::TestSeed());
  std::uniform_int_distribution<std::int64_t> times(-62'135'596'800 * kSecond,
                                                    253'402'300'800 * kSecond - 1);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t time = times(random);
    ASSERT_EQ(ParseTimestamp(TimestampText(time)), time) << TimestampText(time);
  }
}

}  // namespace
}  // namespace rhizome
