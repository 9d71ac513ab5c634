#include "storage/array/shard_index.h"

#include <gmock/gmock.h>

#include <random>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kNone = InnerRange::kNone;

// Three inner chunks before an index of 52 bytes at the end: [0, 100), a missing one, [120, 200).
constexpr ShardIndexFormat kAtEnd{.inner_chunks = 3};
constexpr std::uint64_t kShardIndexFileBytes = 200 + 52;
const std::vector<InnerRange> kSound = {{0, 100}, {}, {120, 80}};

/// Returns the reason why an index with these ranges and a correct checksum is rejected.
std::string WhyRefused(const std::vector<InnerRange>& ranges, ShardIndexFormat format = kAtEnd,
                       std::uint64_t file_bytes = kShardIndexFileBytes) {
  const auto decoded = DecodeShardIndex(format, EncodeShardIndex(format, ranges), file_bytes);
  if (decoded) return "it was not refused";
  EXPECT_EQ(decoded.error().code(), StatusCode::kCorruption);
  return decoded.error().message();
}

TEST(ShardIndexTest, ReturnsInEveryPlaceOrderAndNumberOfChecksums) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 300; ++i) {
    const ShardIndexFormat format{.inner_chunks = random() % 40,
                                  .at_start = random() % 2 == 0,
                                  .big_endian = random() % 2 == 0,
                                  .checksums = static_cast<std::uint32_t>(random() % 3)};
    std::vector<InnerRange> ranges(format.inner_chunks);
    std::uint64_t end = format.at_start ? format.size_bytes() : 0;
    for (InnerRange& range : ranges) {
      if (random() % 4 == 0) continue;
      range = {end + random() % 10, random() % 1000};
      end = range.offset_bytes + range.size_bytes;
    }
    std::shuffle(ranges.begin(), ranges.end(), random);
    const std::uint64_t file_bytes = end + (format.at_start ? 0 : format.size_bytes());
    const auto bytes = EncodeShardIndex(format, ranges);
    const auto decoded = DecodeShardIndex(format, bytes, file_bytes);
    ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, ranges);
  }
}

TEST(ShardIndexTest, BytesAreThoseOfTheSpecification) {
  const auto bytes = EncodeShardIndex({.inner_chunks = 2}, std::vector<InnerRange>{{5, 7}, {}});
  ASSERT_EQ(bytes.size(), 36u);
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data()), 5u);
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + 8), 7u);
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + 16), ~std::uint64_t{0});
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + 24), ~std::uint64_t{0});
  EXPECT_EQ(LoadLittle<std::uint32_t>(bytes.data() + 32), Crc32c(std::span(bytes).first(32)));
  const auto big = EncodeShardIndex({.inner_chunks = 1, .big_endian = true, .checksums = 0},
                                    std::vector<InnerRange>{{5, 7}});
  EXPECT_EQ(big[7], std::byte{5});
  EXPECT_EQ(big[15], std::byte{7});
}

TEST(ShardIndexTest, RangeBeyondTheFileIsRefused) {
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {253, 0}}), HasSubstr("beyond the end of the file at 252"));
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {120, 500}}),
              HasSubstr("inner chunk 2 has offset 120 and length 500"));
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {kNone - 1, 80}}), HasSubstr("beyond the end"));
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {120, kNone - 1}}), HasSubstr("beyond the end"));
  // offset + length overflows to 100 in 64 bits.
  EXPECT_THAT(WhyRefused({{0, 10}, {}, {200, kNone - 99}}), HasSubstr("beyond the end"));
}

TEST(ShardIndexTest, OnlyOneOfTheTwoMissingIsRefused) {
  EXPECT_THAT(WhyRefused({{0, 100}, {kNone, 5}, {120, 80}}), HasSubstr("only one of the two"));
  EXPECT_THAT(WhyRefused({{0, 100}, {5, kNone}, {120, 80}}), HasSubstr("only one of the two"));
}

TEST(ShardIndexTest, OverlapIsRefused) {
  EXPECT_THAT(WhyRefused({{0, 100}, {99, 10}, {120, 80}}),
              HasSubstr("inner chunk 0, bytes [0, 100) overlaps inner chunk 1, bytes [99, 109)"));
  EXPECT_THAT(WhyRefused({{50, 10}, {}, {50, 10}}), HasSubstr("overlaps"));
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {120, 81}}), HasSubstr("it overlaps the index"));
  EXPECT_THAT(WhyRefused({{0, 100}, {}, {220, 4}}), HasSubstr("it overlaps the index"));
  const ShardIndexFormat at_start{.inner_chunks = 3, .at_start = true};
  EXPECT_THAT(WhyRefused({{51, 10}, {}, {120, 80}}, at_start), HasSubstr("it overlaps the index"));
  EXPECT_EQ(WhyRefused({{52, 10}, {}, {120, 80}}, at_start), "it was not refused");
}

TEST(ShardIndexTest, WrongChecksumIsRefused) {
  auto bytes = EncodeShardIndex(kAtEnd, kSound);
  ASSERT_OK(DecodeShardIndex(kAtEnd, bytes, kShardIndexFileBytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{4};
    const auto decoded = DecodeShardIndex(kAtEnd, bytes, kShardIndexFileBytes);
    ASSERT_FALSE(decoded.has_value());
    EXPECT_STATUS(decoded, kCorruption);
    EXPECT_THAT(decoded.error().message(),
                HasSubstr("shard index, bytes [200, 252): its checksum"));
    bytes[i] ^= std::byte{4};
  }
}

TEST(ShardIndexTest, TruncatedOrTooLargeIsRefused) {
  const auto bytes = EncodeShardIndex(kAtEnd, kSound);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_STATUS(DecodeShardIndex(kAtEnd, std::span(bytes).first(size), kShardIndexFileBytes),
                  kCorruption);
  EXPECT_STATUS(DecodeShardIndex(kAtEnd, bytes, 51), kCorruption);
  const ShardIndexFormat large{.inner_chunks = kMaxInnerChunks + 1};
  EXPECT_STATUS(DecodeShardIndex(large, bytes, kShardIndexFileBytes), kCorruption);
}

TEST(ShardIndexTest, FileThatCannotHoldItIsRefusedUnread) {
  const testing::TempDir dir;
  FileSystem& fs = FileSystem::Posix();
  ASSERT_OK(WriteWholeFile(fs, dir / "shard", EncodeShardIndex(kAtEnd, kSound)));
  const auto file = fs.OpenRead(dir / "shard");
  ASSERT_OK(file);
  // The ranges are beyond the 52 bytes of the file.
  EXPECT_STATUS(ReadShardIndex(**file, kAtEnd), kCorruption);
  const auto too_many = ReadShardIndex(**file, {.inner_chunks = kMaxInnerChunks});
  ASSERT_FALSE(too_many.has_value());
  EXPECT_STATUS(too_many, kCorruption);
  EXPECT_THAT(too_many.error().message(), HasSubstr("52 bytes are too few for the shard index"));
}

}  // namespace
}  // namespace rhizome
