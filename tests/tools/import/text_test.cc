#include "tools/cli/text.h"

#include <gtest/gtest.h>

#include "rhizome/sampler.h"
#include "tools/cli/cli.h"
#include "tools/import/layout_flags.h"

namespace rhizome {
namespace {

TEST(TextTest, NumbersReadWell) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(117659), "117,659");
  EXPECT_EQ(WithCommas(18446744073709551615U), "18,446,744,073,709,551,615");
  EXPECT_EQ(HumanCount(12), "12");
  EXPECT_EQ(HumanCount(1234567), "1.23 M");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(12 * 1024 * 1024 + 300 * 1024), "12.3 MiB");
  EXPECT_EQ(HumanSeconds(0.0012), "1.2 ms");
  EXPECT_EQ(HumanSeconds(125), "2 min 5 s");
  EXPECT_EQ(HumanClock(12.9), "0:12");
  EXPECT_EQ(HumanClock(3723), "1:02:03");
  EXPECT_EQ(Plural(1, "file"), "1 file");
  EXPECT_EQ(Plural(0, "file"), "0 files");
}

TEST(TextTest, ShortenNeverCutsACodePoint) {
  EXPECT_EQ(DisplayWidth("naïve"), 5U);
  EXPECT_EQ(Shorten("naïve", 3), "naï");
  EXPECT_EQ(Shorten("naïve", 2), "na");
  EXPECT_EQ(Shorten("abc", 9), "abc");
}

TEST(TextTest, TableAlignsByDisplayWidth) {
  TextTable table({1});
  table.Add({"é", "1"});
  table.Add({"bb", "22", "x"});
  EXPECT_EQ(table.ToString(), "  é    1\n  bb  22  x\n");
}

TEST(FlagsTest, SizesAreBinary) {
  EXPECT_EQ(ParseSize("65536"), 65536U);
  EXPECT_EQ(ParseSize("512M"), 512U << 20);
  EXPECT_EQ(ParseSize("4G"), std::uint64_t{4} << 30);
  EXPECT_EQ(ParseSize("1.5k"), 1536U);
  EXPECT_EQ(ParseSize("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(ParseSize("2gb"), std::uint64_t{2} << 30);
  EXPECT_EQ(ParseSize("7b"), 7U);
  for (const char* bad : {"", "M", "-1", "12X", "1 G", "1e9", "nan", "inf", "99999999T", "4GG"}) {
    EXPECT_FALSE(ParseSize(bad).has_value()) << bad;
  }
}

TEST(FlagsTest, FanoutsAreNumbersOrAll) {
  EXPECT_EQ(ParseFanouts("10,5"), (std::vector<std::int64_t>{10, 5}));
  EXPECT_EQ(ParseFanouts("all,3"), (std::vector<std::int64_t>{kAllNeighbors, 3}));
  for (const char* bad : {"", "10,", "0", "-1", "a", "10;5", "99999999999999999999"}) {
    EXPECT_FALSE(ParseFanouts(bad).has_value()) << bad;
  }
}

TEST(FlagsTest, CodecsTakeALevelInRange) {
  EXPECT_EQ(ParseCodecFlag("raw")->kind, CodecKind::kRaw);
  EXPECT_EQ(ParseCodecFlag("zstd:19")->level, 19);
  EXPECT_EQ(ParseCodecFlag("blosc-lz4:9")->kind, CodecKind::kBloscLz4);
  for (const char* bad : {"", "blosclz", "zstd:", "zstd:0", "zstd:20", "blosc-lz4:10", "zstd:3x"}) {
    EXPECT_FALSE(ParseCodecFlag(bad).has_value()) << bad;
  }
}

TEST(FlagsTest, EveryStatusCodeHasTheExitCodeOfTheDesign) {
  EXPECT_EQ(ExitCode(StatusCode::kOk), 0);
  EXPECT_EQ(ExitCode(StatusCode::kInvalidArgument), 1);
  EXPECT_EQ(ExitCode(StatusCode::kAlreadyExists), 1);
  EXPECT_EQ(ExitCode(StatusCode::kNotFound), 2);
  EXPECT_EQ(ExitCode(StatusCode::kPermissionDenied), 2);
  EXPECT_EQ(ExitCode(StatusCode::kIoError), 2);
  EXPECT_EQ(ExitCode(StatusCode::kCorruption), 3);
  EXPECT_EQ(ExitCode(StatusCode::kBusy), 4);
  EXPECT_EQ(ExitCode(StatusCode::kOutOfSpace), 5);
  EXPECT_EQ(ExitCode(StatusCode::kOutOfMemory), 5);
  EXPECT_EQ(ExitCode(StatusCode::kUnsupported), 6);
  EXPECT_EQ(ExitCode(StatusCode::kInterrupted), 130);
}

}  // namespace
}  // namespace rhizome
