#include "index/input/table_writer.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "storage/base/half.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

const std::vector<std::string> kTexts = {
    "plain",    "a,b",     "say \"so\"", "tab\there", "line\nbreak",
    "cr\rhere", " blank ", "#comment",   "%header",   "\xEF\xBB\xBFmark",
    "naît_à",   "a;b|c",   "\"",         "trailing\r"};

TEST(TableWriterTest, TheReaderReadsTheSameTextBack) {
  const TempDir dir;
  for (const TableForm form : {TableForm::kCsv, TableForm::kTabs}) {
    const bool csv = form == TableForm::kCsv;
    const Path path = dir / (csv ? "t.csv" : "t.tsv");
    std::vector<std::string> written;
    std::string file;
    for (const std::string& text : kTexts) {
      std::string line;
      const Status status = AppendField(text, form, line);
      if (csv) {
        ASSERT_OK(status);
      }
      if (!status.ok()) {
        EXPECT_NE(status.message().find(".csv"), std::string::npos) << status.message();
        EXPECT_TRUE(line.empty());
        continue;
      }
      file += "x" + std::string(1, SeparatorOf(form)) + line + "\n";
      written.push_back(text);
    }
    EXPECT_EQ(written.size(), csv ? kTexts.size() : 8u);
    std::ofstream(path, std::ios::binary) << file;
    auto reader = TableReader::Open(FileSystem::Posix(), path, false);
    ASSERT_OK(reader);
    for (const std::string& text : written) {
      const auto next = (*reader)->ReadLine();
      ASSERT_OK(next);
      ASSERT_EQ(*next, TableReader::Next::kFields) << (*reader)->reason();
      ASSERT_EQ((*reader)->fields().size(), 2u);
      EXPECT_EQ((*reader)->fields()[1], text);
    }
  }
}

template <typename T>
std::string TextOf(DataType dtype, T value, std::optional<std::int64_t> null = {}) {
  std::string line;
  AppendValue({.dtype = dtype, .null = null}, std::as_bytes(std::span(&value, 1)), line);
  return line;
}

TEST(TableWriterTest, IntegersHaveAllDigits) {
  EXPECT_EQ(TextOf(DataType::kInt64, std::numeric_limits<std::int64_t>::min()),
            "-9223372036854775808");
  EXPECT_EQ(TextOf(DataType::kInt64, std::int64_t{9007199254740993}), "9007199254740993");
  EXPECT_EQ(TextOf(DataType::kUint32, ~std::uint32_t{0}), "4294967295");
  EXPECT_EQ(TextOf(DataType::kUint8, std::uint8_t{255}), "255");
  EXPECT_EQ(TextOf(DataType::kInt32, std::int32_t{-7}), "-7");
  EXPECT_EQ(TextOf(DataType::kInt32, std::int32_t{-7}, -7), "");
  EXPECT_EQ(TextOf(DataType::kInt64, std::int64_t{6}, -7), "6");
  EXPECT_EQ(TextOf(DataType::kInt16, std::int16_t{-300}), "-300");
  EXPECT_EQ(TextOf(DataType::kInt8, std::int8_t{-8}), "-8");
}

TEST(TableWriterTest, TimesAndTruthHaveTheirOwnTexts) {
  EXPECT_EQ(TextOf(DataType::kBool, std::uint8_t{1}), "true");
  EXPECT_EQ(TextOf(DataType::kBool, std::uint8_t{0}), "false");
  const auto text_of = [](ArrayEntry entry, std::int64_t value) {
    entry.dtype = DataType::kInt64;
    std::string line;
    AppendValue(ValueFormOf(entry), std::as_bytes(std::span(&value, 1)), line);
    return line;
  };
  ArrayEntry time;
  time.attributes = {{"null", "-5"}, {"type", "timestamp"}};
  EXPECT_EQ(text_of(time, 1714566600000000), "2024-05-01T12:30:00Z");
  EXPECT_EQ(text_of(time, -5), "");
  ArrayEntry truth;
  truth.attributes = {{"null", "2"}, {"type", "bool"}};
  EXPECT_EQ(text_of(truth, 1), "true");
  EXPECT_EQ(text_of(truth, 0), "false");
  EXPECT_EQ(text_of(truth, 2), "");
}

TEST(TableWriterTest, FloatsAreIdentifiedByTheirDigits) {
  EXPECT_EQ(TextOf(DataType::kFloat32, 0.5F), "0.5");
  EXPECT_EQ(TextOf(DataType::kFloat32, std::nanf("")), "nan");
  EXPECT_EQ(TextOf(DataType::kFloat32, -std::nanf("")), "nan");
  EXPECT_EQ(TextOf(DataType::kFloat32, std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(TextOf(DataType::kFloat32, -std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(TextOf(DataType::kFloat16, std::uint16_t{0x3C00}), "1");
  EXPECT_EQ(TextOf(DataType::kBfloat16, std::uint16_t{0x3F80}), "1");
  EXPECT_EQ(TextOf(DataType::kFloat64, 0.1), "0.1");
  EXPECT_EQ(TextOf(DataType::kFloat64, 1.0 / 3), "0.3333333333333333");
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 10000; ++round) {
    const auto bits = static_cast<std::uint32_t>(rng());
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const std::string text = TextOf(DataType::kFloat32, value);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(std::strtof(text.c_str(), nullptr)), bits) << text;
    const auto half = static_cast<std::uint16_t>(rng());
    if (std::isnan(HalfToFloat(half))) continue;
    const std::string narrow = TextOf(DataType::kFloat16, half);
    EXPECT_EQ(FloatToHalf(std::strtof(narrow.c_str(), nullptr)), half) << narrow;
  }
}

}  // namespace
}  // namespace rhizome
