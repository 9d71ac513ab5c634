#include "storage/base/hash.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rhizome/types.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

std::span<const std::byte> BytesOfHash(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> RandomBytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

// Computes the checksum from its definition, one bit at a time.
std::uint32_t SlowCrc32c(std::span<const std::byte> bytes) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    state ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~state;
}

std::string Hex(const Hash128& hash) { return StoreId{hash}.ToString(); }

// "123456789" is the standard check value. The other two are from RFC 3720, appendix B.4.
TEST(Crc32cTest, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c({}), 0U);
  EXPECT_EQ(Crc32c(BytesOfHash("123456789")), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0x00})), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43U);
}

TEST(Crc32cTest, EqualsTheBitwiseDefinitionForAnyLengthAddressAndSplit) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::byte> data = RandomBytes(5000, random());
  for (int i = 0; i < 300; ++i) {
    const std::size_t begin = random() % data.size();
    const auto part = std::span(data).subspan(begin, random() % (data.size() - begin + 1));
    const std::size_t split = random() % (part.size() + 1);
    EXPECT_EQ(Crc32c(part), SlowCrc32c(part));
    EXPECT_EQ(Crc32c(part.subspan(split), Crc32c(part.first(split))), SlowCrc32c(part));
  }
}

// The value for the empty input is published with the algorithm.
TEST(Xxh3Test, GivesThePublishedValueInBigEndianOrder) {
  EXPECT_EQ(Hex(Xxh3({})), "99aa06d3014798d86001c324468d497f");
}

TEST(StreamHashTest, EqualsTheHashesOfTheWholeHoweverItIsCut) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::byte> data = RandomBytes(100'000, random());
  StreamHash hash;
  for (std::span<const std::byte> rest = data; !rest.empty();) {
    const std::size_t piece = std::min<std::size_t>(random() % 3000, rest.size());
    hash.Update(rest.first(piece));
    rest = rest.subspan(piece);
  }
  EXPECT_EQ(hash.xxh3(), Xxh3(data));
  EXPECT_EQ(hash.crc32c(), Crc32c(data));

  StreamHash moved = std::move(hash);
  moved.Update(BytesOfHash("more"));
  EXPECT_NE(moved.xxh3(), Xxh3(data));
}

TEST(StoreIdTest, ParsesWhatItPrintsAndRefusesTheRest) {
  const StoreId id = StoreId::Random();
  const Result<StoreId> again = StoreId::Parse(id.ToString());
  ASSERT_OK(again);
  EXPECT_EQ(*again, id);
  EXPECT_EQ(StoreId::Parse("00112233445566778899aabbccddeeff")->ToString(),
            "00112233445566778899aabbccddeeff");
  EXPECT_STATUS(StoreId::Parse(""), kInvalidArgument);
  EXPECT_STATUS(StoreId::Parse("0011"), kInvalidArgument);
  EXPECT_STATUS(StoreId::Parse("g0112233445566778899aabbccddeeff"), kInvalidArgument);
  EXPECT_STATUS(StoreId::Parse("00112233445566778899aabbccddeef "), kInvalidArgument);
}

TEST(StoreIdTest, RandomIdsDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(StoreId::Random().ToString());
  EXPECT_EQ(ids.size(), 1000U);
}

TEST(DataTypeTest, NamesAndSizesFitTogether) {
  const std::pair<std::string_view, std::size_t> all[] = {
      {"float32", 4}, {"float16", 2}, {"int64", 8}, {"int32", 4},    {"uint32", 4}, {"uint8", 1},
      {"bool", 1},    {"int8", 1},    {"int16", 2}, {"bfloat16", 2}, {"float64", 8}};
  for (const auto& [name, bytes] : all) {
    const auto type = ParseDataType(name);
    ASSERT_TRUE(type.has_value()) << name;
    EXPECT_EQ(DataTypeName(*type), name);
    EXPECT_EQ(DataTypeBytes(*type), bytes);
  }
  EXPECT_FALSE(ParseDataType("uint64").has_value());
  EXPECT_FALSE(ParseDataType("complex64").has_value());
  EXPECT_FALSE(ParseDataType("invalid").has_value());
}

TEST(HashTest, SumsOfPartsCombineToTheSumOfTheWhole) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const auto whole = RandomBytes(random() % 600, random());
    const std::size_t cut = random() % (whole.size() + 1);
    const auto first = std::span(whole).first(cut);
    const auto second = std::span(whole).subspan(cut);
    EXPECT_EQ(Crc32cCombine(SlowCrc32c(first), SlowCrc32c(second), second.size()),
              SlowCrc32c(whole))
        << whole.size() << " bytes, cut at " << cut;
  }
  // The second parts are long, so that every bit of the length matters.
  const auto first = RandomBytes(100, random());
  for (std::uint64_t length = 1; length <= 1 << 20; length *= 2) {
    const std::vector<std::byte> zeros(length + random() % 3, std::byte{0});
    EXPECT_EQ(Crc32cCombine(Crc32c(first), Crc32c(zeros), zeros.size()),
              Crc32c(zeros, Crc32c(first)))
        << zeros.size();
  }
}

TEST(HashTest, SumsOfBlocksCombineToTheSumOfTheFile) {
  std::mt19937_64 random(testing::TestSeed());
  EXPECT_EQ(Crc32cOfBlocks({}, 4096, 0), 0U);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t block_bytes = 1 + random() % 300;
    const auto whole = RandomBytes(1 + random() % 3000, random());
    std::vector<std::uint32_t> blocks;
    for (std::size_t at = 0; at < whole.size(); at += block_bytes)
      blocks.push_back(SlowCrc32c(
          std::span(whole).subspan(at, std::min<std::size_t>(block_bytes, whole.size() - at))));
    EXPECT_EQ(Crc32cOfBlocks(blocks, block_bytes, whole.size()), SlowCrc32c(whole))
        << whole.size() << " bytes in blocks of " << block_bytes;
  }
}

}  // namespace
}  // namespace rhizome
