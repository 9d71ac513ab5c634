#include "index/topology/compressed_list.h"

#include <algorithm>
#include <random>

#include "testing/testing.h"

namespace rhizome {
namespace {

std::vector<std::uint64_t> DrawList(std::mt19937_64& rng) {
  std::vector<std::uint64_t> values(rng() % 4 == 0 ? rng() % 1500 : rng() % 40);
  const std::uint64_t universe = std::uint64_t{1} << (rng() % 45);
  for (std::uint64_t& value : values) value = rng() % universe;
  std::sort(values.begin(), values.end());
  return values;
}

TEST(CompressedListTest, EveryEntryIsReadAloneAndTogether) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::uint64_t> values = DrawList(rng);
    std::vector<std::byte> bytes;
    AppendCompressedList(values, bytes);
    const auto list = CompressedList::Open(bytes, values.size());
    ASSERT_TRUE(list);
    std::vector<std::uint64_t> decoded(values.size());
    ASSERT_TRUE(list->Decode(decoded));
    EXPECT_EQ(decoded, values);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(list->At(i), values[i]);
  }
}

TEST(CompressedListTest, TakesLittleMoreThanTheBound) {
  std::mt19937_64 rng(5);
  std::vector<std::uint64_t> values(10000);
  for (std::uint64_t& value : values) value = rng() % (1 << 22);
  std::sort(values.begin(), values.end());
  std::vector<std::byte> bytes;
  AppendCompressedList(values, bytes);
  // An entry needs 2 + log2(2^22 / 10^4) = 10.7 bits, and 256 entries another 8 bytes.
  EXPECT_LT(bytes.size() * 8, values.size() * 11);
}

TEST(CompressedListTest, AnyFlippedBitIsNoticedOrChangesNothingButLowParts) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::uint64_t> values = DrawList(rng);
    std::vector<std::byte> bytes;
    AppendCompressedList(values, bytes);
    for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 1 + rng() % 7) {
      std::vector<std::byte> damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      const auto list = CompressedList::Open(damaged, values.size());
      if (!list) continue;
      std::vector<std::uint64_t> decoded(values.size());
      const bool decodes = list->Decode(decoded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = list->At(i);
        if (decodes) {
          EXPECT_EQ(value, decoded[i]);
        }
      }
      if (decodes) {
        EXPECT_TRUE(std::is_sorted(decoded.begin(), decoded.end()));
      }
    }
  }
}

// For arbitrary bytes, the decoder reads nothing beyond them (asan), and the result is sorted.
TEST(CompressedListTest, RandomBytesAreHarmless) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(rng() % 60);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng() % 4 == 0 ? 0 : rng());
    if (!bytes.empty()) bytes[0] = static_cast<std::byte>(rng() % 60);
    bytes.shrink_to_fit();
    const std::uint64_t count = rng() % 8 == 0 ? rng() : rng() % 300;
    const auto list = CompressedList::Open(bytes, count);
    if (!list) continue;
    ASSERT_LE(count, bytes.size() * 8);
    for (std::uint64_t i = 0; i < count; ++i) static_cast<void>(list->At(i));
    std::vector<std::uint64_t> decoded(count);
    if (list->Decode(decoded)) {
      EXPECT_TRUE(std::is_sorted(decoded.begin(), decoded.end()));
    }
  }
}

}  // namespace
}  // namespace rhizome
