#include "cache/feed/superbatch.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "cache/feed/packed_numbers.h"
#include "testing/testing.h"

// Tests of the encodings of superbatches on scratch files: PackedNumbers, lists of integers in up
// to four widths, and encoded minibatches. Round trips, sizes, damaged and truncated bytes.

namespace rhizome {
namespace {

/// Returns a number of a random bit width, so that small and large ones mix.
std::uint64_t RandomNumber(std::mt19937_64& random, std::uint32_t max_width) {
  const std::uint32_t width = static_cast<std::uint32_t>(random() % (max_width + 1));
  return width == 0 ? 0 : random() >> (64 - width);
}

std::vector<std::byte> Pack(const std::vector<std::uint64_t>& values) {
  std::vector<std::byte> bytes;
  AppendPacked(values, bytes);
  return bytes;
}

std::vector<std::byte> WithSlack(std::vector<std::byte> bytes) {
  bytes.resize(bytes.size() + kPackedSlackBytes, std::byte{0xA5});
  return bytes;
}

std::vector<std::uint64_t> Unpack(const PackedNumbers& list) {
  std::vector<std::uint64_t> values;
  list.ForEach([&values](std::uint64_t value) { values.push_back(value); });
  return values;
}

TEST(PackedNumbersTest, AnyNumbersComeBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> values(random() % 300);
    const std::uint32_t max_width = static_cast<std::uint32_t>(random() % 65);
    for (std::uint64_t& value : values) value = RandomNumber(random, max_width);
    const std::vector<std::byte> bytes = WithSlack(Pack(values));
    const auto list = PackedNumbers::Open(bytes, values.size());
    ASSERT_TRUE(list.has_value());
    EXPECT_EQ(list->size_bytes() + kPackedSlackBytes, bytes.size());
    ASSERT_EQ(Unpack(*list), values);
  }
}

TEST(PackedNumbersTest, ListsOfOneWidthAndOfNothing) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1}, most >> 7, most >> 6, most}) {
    for (const std::size_t count : {0, 1, 31, 32, 33, 64, 65}) {
      const std::vector<std::uint64_t> values(count, value);
      const std::vector<std::byte> bytes = WithSlack(Pack(values));
      const auto list = PackedNumbers::Open(bytes, count);
      ASSERT_TRUE(list.has_value());
      EXPECT_EQ(Unpack(*list), values);
      // The list has one width class, so it has no tags.
      const std::size_t width =
          count == 0 ? 0
                     : std::max<std::size_t>(static_cast<std::size_t>(std::bit_width(value)), 1);
      EXPECT_EQ(list->size_bytes(), 8 + (count * width + 7) / 8);
    }
  }
}

/// Returns the bytes of the best width classes, found by trying all sets of up to four widths.
std::size_t LeastBytes(const std::vector<std::uint64_t>& values, std::uint32_t max_width) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::uint32_t set = 1; set < (std::uint32_t{1} << (max_width + 1)); ++set) {
    const int classes = std::popcount(set);
    if (classes > 4 || (classes == 1 && (set & 1) != 0)) continue;
    const std::size_t tag_bits = classes == 1 ? 0 : classes == 2 ? 1 : 2;
    std::size_t bits = 0;
    bool holds_all = true;
    for (const std::uint64_t value : values) {
      const auto width = static_cast<std::uint32_t>(std::bit_width(value));
      const std::uint32_t wide_enough = set >> width << width;
      holds_all = holds_all && wide_enough != 0;
      bits += static_cast<std::size_t>(std::countr_zero(wide_enough));
    }
    if (!holds_all) continue;
    // Tags are stored in whole words, but the choice counts bits.
    least = std::min(least, bits + values.size() * tag_bits);
  }
  return least;
}

TEST(PackedNumbersTest, NoOtherClassesAreSmaller) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    std::vector<std::uint64_t> values(64);  // whole words of tags
    for (std::uint64_t& value : values) {
      value = random() % 2 == 0 ? RandomNumber(random, 3) : RandomNumber(random, 9);
    }
    EXPECT_EQ(Pack(values).size(), 8 + (LeastBytes(values, 9) + 7) / 8);
  }
}

TEST(PackedNumbersTest, ACountThatTheBytesCannotHoldIsRefused) {
  const std::vector<std::byte> bytes = WithSlack(Pack({1, 2, 3, 400}));
  EXPECT_TRUE(PackedNumbers::Open(bytes, 4).has_value());
  for (const std::uint64_t count :
       {std::uint64_t{1000}, std::uint64_t{1} << 40, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_FALSE(PackedNumbers::Open(bytes, count).has_value()) << count;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(PackedNumbers::Open(std::span(bytes).subspan(0, size), 4).has_value()) << size;
  }
  // Width 0 for all numbers and undefined width classes must be refused.
  std::vector<std::byte> wrong = bytes;
  wrong[0] = std::byte{0};
  wrong[1] = std::byte{0};
  EXPECT_FALSE(PackedNumbers::Open(wrong, 4).has_value());
  wrong[0] = std::byte{3};
  EXPECT_FALSE(PackedNumbers::Open(wrong, 4).has_value());
  wrong = bytes;
  wrong[4] = std::byte{65};
  EXPECT_FALSE(PackedNumbers::Open(wrong, 4).has_value());
}

/// Adds pairs and negatives: numbers of seeds. There must be a seed.
void AddPairs(std::mt19937_64& random, Minibatch& m) {
  const auto seed = [&] { return static_cast<std::uint32_t>(random() % m.seed_count); };
  m.pairs.resize(random() % 30);
  for (MinibatchPair& pair : m.pairs) pair = {seed(), seed(), static_cast<TypeId>(random())};
  for (auto& side : m.negatives) {
    side.resize(random() % 3);
    for (MinibatchNegatives& negatives : side) {
      negatives.type = static_cast<TypeId>(random());
      negatives.vertices.resize(random() % 40);
      for (std::uint32_t& vertex : negatives.vertices) vertex = seed();
    }
  }
}

/// Returns a minibatch numbered as by the sampler: vertices other than seeds are numbered by first
/// appearance, and the lists of the last hop are empty.
Minibatch SampledMinibatch(std::mt19937_64& random) {
  Minibatch m;
  m.tag = random();
  m.seed_count = 1 + random() % 20;
  std::uint64_t known = m.seed_count;
  m.hop_offsets = {0, known};
  const std::uint64_t hops = 1 + random() % 3;
  for (std::uint64_t hop = 0; hop < hops; ++hop) {
    for (std::uint64_t v = m.hop_offsets[hop]; v < m.hop_offsets[hop + 1]; ++v) {
      for (std::uint64_t drawn = random() % 5; drawn > 0; --drawn) {
        const bool fresh = random() % 3 == 0;
        m.neighbors.push_back(static_cast<std::uint32_t>(fresh ? known : random() % known));
        known += fresh ? 1 : 0;
      }
      m.offsets.push_back(static_cast<std::uint32_t>(m.neighbors.size()));
    }
    m.hop_offsets.push_back(known);
  }
  m.offsets.resize(known + 1, m.offsets.back());
  for (std::uint64_t v = 0; v < known; ++v) m.rows.push_back(static_cast<Row>(random() % 1000000));
  if (random() % 2 == 0) {
    for (std::uint64_t v = 0; v < known; ++v) {
      m.degrees.push_back(static_cast<std::uint32_t>(RandomNumber(random, 32)));
    }
  }
  if (random() % 2 == 0) {
    for (std::size_t e = 0; e < m.neighbors.size(); ++e) {
      m.types.push_back(static_cast<TypeId>(random() % 3));
      m.weights.push_back(static_cast<float>(random() % 1000) / 7);
    }
    for (std::uint64_t v = 0; v < known; ++v)
      m.weighted_degrees.push_back(static_cast<float>(random() % 1000) / 3);
  }
  if (random() % 2 == 0) AddPairs(random, m);
  return m;
}

/// Returns a minibatch of arbitrary numbers that are not consistent with each other.
Minibatch ArbitraryMinibatch(std::mt19937_64& random) {
  Minibatch m;
  m.tag = random();
  const auto fill = [&random](auto& values, std::uint32_t width) {
    values.resize(random() % 60);
    for (auto& value : values) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(RandomNumber(random, width));
    }
  };
  fill(m.rows, 64);
  fill(m.hop_offsets, 64);
  fill(m.offsets, 32);
  fill(m.neighbors, 32);
  fill(m.degrees, 32);
  fill(m.types, 16);
  fill(m.hop_lists, 64);
  fill(m.seed_of, 32);
  m.weights.resize(random() % 60);
  for (float& weight : m.weights) weight = static_cast<float>(RandomNumber(random, 40)) - 1e9F;
  m.edges.resize(random() % 60);
  for (EdgeId& edge : m.edges) {
    edge = {.partition = static_cast<PartitionId>(RandomNumber(random, 16)),
            .position = RandomNumber(random, 64)};
  }
  m.seed_count = m.rows.empty() ? 0 : random() % m.rows.size();
  if (random() % 2 == 0) m.weighted_degrees.resize(m.rows.size(), -2.5F);
  if (random() % 2 == 0 && m.seed_count > 0) AddPairs(random, m);
  return m;
}

bool Equal(const Minibatch& a, const Minibatch& b) {
  return a.tag == b.tag && a.seed_count == b.seed_count && a.rows == b.rows &&
         a.hop_offsets == b.hop_offsets && a.offsets == b.offsets && a.neighbors == b.neighbors &&
         a.degrees == b.degrees && a.types == b.types && a.weights == b.weights &&
         a.edges == b.edges && a.hop_lists == b.hop_lists && a.seed_of == b.seed_of &&
         a.weighted_degrees == b.weighted_degrees && a.pairs == b.pairs &&
         a.negatives == b.negatives;
}

TEST(MinibatchCodeTest, RandomMinibatchesComeBackAsTheyWere) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 400; ++round) {
    const Minibatch m = round % 2 == 0 ? SampledMinibatch(random) : ArbitraryMinibatch(random);
    const Result<Minibatch> decoded = DecodeMinibatch(EncodeMinibatch(m));
    ASSERT_OK(decoded);
    ASSERT_TRUE(Equal(*decoded, m)) << round;
  }
}

TEST(MinibatchCodeTest, VerticesAtFirstSightCostTwoBitsAtMost) {
  // A star of stars, in which every vertex appears once.
  Minibatch m;
  m.seed_count = 1;
  constexpr std::uint32_t kVertices = 100'001;
  for (std::uint32_t v = 0; v < kVertices; ++v) m.rows.push_back(v);
  m.hop_offsets = {0, 1, 11, kVertices};
  for (std::uint32_t v = 1; v < kVertices; ++v) m.neighbors.push_back(v);
  m.offsets = {0, 10};
  m.offsets.resize(kVertices + 1, kVertices - 1);
  const std::size_t rows_bytes = kVertices * 17 / 8 + 1;
  EXPECT_LT(EncodeMinibatch(m).size(), rows_bytes + kVertices / 4 + 200);
}

TEST(MinibatchCodeTest, FactsOfEdgesCostTheirBitsAndOthersNothing) {
  std::mt19937_64 random(testing::TestSeed());
  Minibatch m;
  m.seed_count = 1;
  constexpr std::uint32_t kEdgesOfSeed = 100'000;
  m.rows = {7};
  m.hop_offsets = {0, 1, 1};
  m.neighbors.assign(kEdgesOfSeed, 0);
  m.offsets = {0, kEdgesOfSeed};
  const std::size_t plain = EncodeMinibatch(m).size();
  for (std::uint32_t e = 0; e < kEdgesOfSeed; ++e)
    m.types.push_back(static_cast<TypeId>(random() % 4));
  const std::size_t typed = EncodeMinibatch(m).size();
  EXPECT_LE(typed, plain + kEdgesOfSeed * 9 / 32 + 16);  // 2.25 bits an edge
  for (std::uint32_t e = 0; e < kEdgesOfSeed; ++e)
    m.weights.push_back(static_cast<float>(random() % 1000) / 7);
  EXPECT_LE(EncodeMinibatch(m).size(), typed + kEdgesOfSeed * 4 + 16);
  m.types.clear();
  m.weights.clear();
  EXPECT_EQ(EncodeMinibatch(m).size(), plain);
}

TEST(MinibatchCodeTest, PairsCostNothingWhereThereAreNone) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    Minibatch m = SampledMinibatch(random);
    const std::vector<std::byte> with_pairs = EncodeMinibatch(m);
    const bool has_pairs = m.pairs.size() + m.negatives[0].size() + m.negatives[1].size() > 0;
    m.pairs.clear();
    m.negatives = {};
    const std::vector<std::byte> without = EncodeMinibatch(m);
    EXPECT_EQ(without.size() < with_pairs.size(), has_pairs);
    // The lists come first, in the same bytes; only the flag is in the header.
    constexpr std::size_t kHeaderBytes = 13 * sizeof(std::uint64_t);
    const std::size_t lists = without.size() - kHeaderBytes - kPackedSlackBytes;
    EXPECT_TRUE(std::equal(without.begin() + kHeaderBytes,
                           without.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + lists),
                           with_pairs.begin() + kHeaderBytes));
  }
}

TEST(MinibatchCodeTest, EndsOfPairsAreSeeds) {
  Minibatch m;
  m.seed_count = 2;
  m.rows = {5, 6, 7};
  m.hop_offsets = {0, 2, 3};
  m.offsets = {0, 0, 0, 0};
  m.pairs = {{.src = 0, .dst = 1, .type = 0}};
  m.negatives[1] = {{.type = 0, .vertices = {1}}};
  EXPECT_OK(DecodeMinibatch(EncodeMinibatch(m)));
  m.pairs[0].dst = 2;
  EXPECT_STATUS(DecodeMinibatch(EncodeMinibatch(m)), kCorruption);
  m.pairs[0].dst = 1;
  m.negatives[1][0].vertices[0] = 2;
  EXPECT_STATUS(DecodeMinibatch(EncodeMinibatch(m)), kCorruption);
}

TEST(MinibatchCodeTest, DamageIsRefusedOrGivesNoMoreThanTheBytesCanHold) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes = EncodeMinibatch(SampledMinibatch(random));
    const std::uint64_t flips = 1 + random() % 4;
    for (std::uint64_t f = 0; f < flips; ++f) {
      // Half of the changes hit the lengths in the header.
      const std::size_t at = random() % 2 == 0 ? random() % 104 : random() % bytes.size();
      bytes[at] ^= static_cast<std::byte>(1 + random() % 255);
    }
    const std::size_t kept = random() % 4 == 0 ? random() % bytes.size() : bytes.size();
    const Result<Minibatch> decoded = DecodeMinibatch(std::span(bytes).subspan(0, kept));
    if (!decoded) {
      EXPECT_EQ(decoded.error().code(), StatusCode::kCorruption);
      continue;
    }
    const std::size_t most = kept * 8;
    EXPECT_LE(decoded->rows.size(), most);
    EXPECT_LE(decoded->hop_offsets.size(), most);
    EXPECT_LE(decoded->offsets.size(), 2 * most);
    EXPECT_LE(decoded->neighbors.size(), most);
    EXPECT_LE(decoded->degrees.size(), most);
    EXPECT_LE(decoded->types.size(), most);
    EXPECT_LE(decoded->weights.size(), most);
    EXPECT_LE(decoded->weighted_degrees.size(), most);
    EXPECT_LE(decoded->edges.size(), most);
    EXPECT_LE(decoded->hop_lists.size(), most);
    EXPECT_LE(decoded->seed_of.size(), most);
    EXPECT_LE(decoded->pairs.size(), most);
    std::size_t negatives = 0;
    for (const auto& side : decoded->negatives)
      for (const MinibatchNegatives& of_type : side) negatives += 1 + of_type.vertices.size();
    EXPECT_LE(negatives, 2 * most);
  }
}

TEST(MinibatchCodeTest, EveryTruncationIsRefused) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 5; ++round) {
    const std::vector<std::byte> bytes = EncodeMinibatch(SampledMinibatch(random));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_STATUS(DecodeMinibatch(std::span(bytes).subspan(0, size)), kCorruption);
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_STATUS(DecodeMinibatch(longer), kCorruption);
  }
}

}  // namespace
}  // namespace rhizome
