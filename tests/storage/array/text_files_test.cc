#include "storage/array/text_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>

#include "storage/base/hash.h"
#include "storage/base/utf8.h"
#include "storage/io/files.h"
#include "testing/testing.h"

// Tests of dictionaries of texts: the bytes of chunks, compared with an encoder of this test, the
// division into chunks, and damage.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

FileSystem& posix = FileSystem::Posix();

TextList Texts(const std::vector<std::string>& texts) {
  return {texts.size(), [&texts](std::uint64_t i) { return std::string_view(texts[i]); }};
}

/// Returns a text of random characters of one to four bytes.
std::string RandomText(std::mt19937_64& random, std::size_t characters) {
  static constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 4> kRanges = {
      {{0x20, 0x7E}, {0xA0, 0x7FF}, {0x800, 0xD7FF}, {0x10000, 0x10FFFF}}};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const auto& [low, high] = kRanges[random() % kRanges.size()];
    const auto c = static_cast<std::uint32_t>(low + random() % (high - low + 1));
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return text;
}

std::vector<std::byte> BytesOf(const Path& path) {
  const auto bytes = ReadWholeFile(posix, path, std::uint64_t{1} << 30);
  EXPECT_OK(bytes);
  return bytes ? *bytes : std::vector<std::byte>();
}

/// Decodes a chunk without the engine: CRC-32C at the end, a zstd frame, uint32 counts and lengths.
std::vector<std::string> DecodeByHand(const std::vector<std::byte>& file) {
  std::vector<char> raw(ZSTD_getFrameContentSize(file.data(), file.size()));
  EXPECT_EQ(ZSTD_decompress(raw.data(), raw.size(), file.data(), file.size() - 4), raw.size());
  std::vector<std::string> texts;
  std::size_t at = 0;
  const auto number = [&] {
    std::uint32_t value = 0;
    std::memcpy(&value, raw.data() + at, 4);
    at += 4;
    return value;
  };
  const std::uint32_t count = number();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = number();
    texts.emplace_back(raw.data() + at, size);
    at += size;
  }
  EXPECT_EQ(at, raw.size());
  return texts;
}

TextsShape ShapeIn(const TextFiles& files) {
  ArrayEntry entry;
  entry.attributes = files.attributes;
  const auto shape = ShapeOfTexts(entry);
  EXPECT_OK(shape);
  return shape ? *shape : TextsShape();
}

TEST(TextFilesTest, RandomTextsAreReadBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    std::set<std::string> distinct;
    const std::size_t wanted = random() % 3000;
    for (std::size_t i = 0; i < wanted; ++i)
      distinct.insert(RandomText(random, 1 + random() % (round % 5 == 0 ? 2000 : 40)));
    const std::vector<std::string> texts(distinct.begin(), distinct.end());
    const TempDir dir;
    const auto written = WriteTexts(posix, dir.path(), "title", Texts(texts));
    ASSERT_OK(written);
    const TextsShape shape = ShapeIn(*written);
    ASSERT_EQ(shape.texts, texts.size());
    ASSERT_EQ(written->files.size(), shape.chunks() + 1);
    std::vector<std::string> read;
    for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      const auto bytes = BytesOf(dir / TextChunkPath("title", chunk));
      const auto decoded = DecodeTextChunk(bytes, shape, chunk);
      ASSERT_OK(decoded);
      std::vector<std::string> by_hand = DecodeByHand(bytes);
      ASSERT_EQ(by_hand.size(), shape.per_chunk);
      for (std::uint64_t i = 0; i < decoded->size(); ++i) {
        ASSERT_EQ(decoded->At(i), by_hand[i]);
        read.emplace_back(decoded->At(i));
      }
      for (std::uint64_t i = decoded->size(); i < by_hand.size(); ++i) ASSERT_EQ(by_hand[i], "");
    }
    ASSERT_EQ(read, texts);
    for (const FileEntry& file : written->files) {
      const auto bytes = BytesOf(dir / file.path);
      EXPECT_EQ(file.size_bytes, bytes.size());
      EXPECT_EQ(file.xxh3, Xxh3(bytes));
      EXPECT_EQ(file.crc32c, Crc32c(bytes));
    }
  }
}

TEST(TextFilesTest, AddedTextsFollowTheSortedOnesInAnyOrder) {
  std::vector<std::string> texts;
  for (int i = 0; i < 30000; ++i) texts.push_back(fmt::format("title {:06}", i));
  for (int i = 0; i < 30000; ++i) texts.push_back(fmt::format("{:06} added", i * 7919 % 30000));
  const TempDir dir;
  TextList list = Texts(texts);
  EXPECT_FALSE(WriteTexts(posix, dir.path(), "t", list));
  list.added = 30000;
  const auto written = WriteTexts(posix, dir.path(), "t", list);
  ASSERT_OK(written);
  const TextsShape shape = ShapeIn(*written);
  EXPECT_EQ(shape.sorted(), 30000U);
  EXPECT_EQ(shape.added, 30000U);
  ASSERT_GT(shape.chunks(), 3U);
  std::uint64_t sorted = 0;
  std::vector<std::string> read;
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    sorted += shape.SortedInChunk(chunk);
    const auto decoded = DecodeTextChunk(BytesOf(dir / TextChunkPath("t", chunk)), shape, chunk);
    ASSERT_OK(decoded);
    for (std::uint64_t i = 0; i < decoded->size(); ++i) read.emplace_back(decoded->At(i));
  }
  EXPECT_EQ(sorted, shape.sorted());
  EXPECT_EQ(read, texts);

  ArrayEntry entry;
  SetAttributes(written->attributes, entry);
  EXPECT_TRUE(HasAddedTexts(entry));
  const std::vector<std::pair<std::string, std::string>> too_many = {
      {std::string(kTextsAddedAttribute), "60001"}};
  SetAttributes(too_many, entry);
  EXPECT_FALSE(ShapeOfTexts(entry));
}

TEST(TextFilesTest, LongTextsDoNotMakeLargeChunks) {
  // Most texts are short, so that the mean asks for many texts in a chunk, and some neighbours are
  // very long.
  std::vector<std::string> texts;
  for (int i = 0; i < 20000; ++i) texts.push_back(fmt::format("a{:05}", i));
  for (int i = 0; i < 80; ++i)
    texts.push_back(fmt::format("b{:02}", i) + std::string(1 << 20, 'x').substr(3));
  const TempDir dir;
  const auto written = WriteTexts(posix, dir.path(), "t", Texts(texts));
  ASSERT_OK(written);
  const TextsShape shape = ShapeIn(*written);
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    const auto bytes = BytesOf(dir / TextChunkPath("t", chunk));
    EXPECT_LE(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), kMaxChunkBytes);
    EXPECT_OK(DecodeTextChunk(bytes, shape, chunk));
  }
}

TEST(TextFilesTest, TextsThatCannotBeStoredAreRefused) {
  const TempDir dir;
  const auto refusal = [&](const std::vector<std::string>& texts) {
    const auto written = WriteTexts(posix, dir.path(), "t", Texts(texts));
    EXPECT_FALSE(written);
    return written ? std::string() : written.error().message();
  };
  EXPECT_THAT(refusal({"a", "b", "b"}), HasSubstr("text 2 is not above the text before it"));
  EXPECT_THAT(refusal({"b", "a"}), HasSubstr("text 1 is not above"));
  EXPECT_THAT(refusal({"", "a"}), HasSubstr("text 0 is empty"));
  EXPECT_THAT(refusal({"a", "\xff"}), HasSubstr("text 1 is not valid UTF-8"));
  EXPECT_THAT(refusal({std::string(kMaxCodedTextBytes + 1, 'x')}), HasSubstr("at most 1048576"));
}

TEST(TextFilesTest, EveryChangedByteIsFound) {
  const std::vector<std::string> texts = {"action", "comédie", "drama"};
  const TempDir dir;
  ASSERT_OK(WriteTexts(posix, dir.path(), "label", Texts(texts)));
  const auto bytes = BytesOf(dir / "texts/label/c.0");
  ASSERT_OK(DecodeTextChunk(bytes, {3, 3}, 0));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{0x10};
    EXPECT_FALSE(DecodeTextChunk(changed, {3, 3}, 0)) << "byte " << i;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeTextChunk(std::span(bytes).first(size), {3, 3}, 0));
  EXPECT_FALSE(DecodeTextChunk(bytes, {2, 3}, 0));  // a text too many
  EXPECT_FALSE(DecodeTextChunk(bytes, {4, 4}, 0));
}

TEST(TextFilesTest, DecodedTextsMustAscend) {
  const std::vector<std::string_view> texts = {"b", "a"};
  const auto bytes = EncodeTextChunk(texts, 2);
  ASSERT_OK(bytes);
  const auto decoded = DecodeTextChunk(*bytes, {2, 2}, 0);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().message(), HasSubstr("text 1 does not ascend"));
}

TEST(TextFilesTest, ACopyHasTheSameBytes) {
  std::vector<std::string> texts;
  for (int i = 0; i < 50000; ++i) texts.push_back(fmt::format("title {:06}", i));
  const TempDir dir;
  const auto written = WriteTexts(posix, dir / "from", "a", Texts(texts));
  ASSERT_OK(written);
  ASSERT_GT(written->files.size(), 2U);
  ArrayEntry holder;
  holder.name = "a";
  SetAttributes(written->attributes, holder);
  const auto copied = CopyTexts(posix, dir / "from", holder, written->files, dir / "to", "b.v2");
  ASSERT_OK(copied);
  ASSERT_EQ(copied->files.size(), written->files.size());
  for (std::size_t i = 0; i < copied->files.size(); ++i)
    EXPECT_EQ(BytesOf(dir / "to" / copied->files[i].path),
              BytesOf(dir / "from" / written->files[i].path));
  EXPECT_EQ(copied->attributes, holder.attributes);
  // A file that is not the manifest's is not copied.
  std::vector<FileEntry> wrong = written->files;
  wrong[1].xxh3[0] ^= std::byte{1};
  EXPECT_EQ(CopyTexts(posix, dir / "from", holder, wrong, dir / "other", "b").error().code(),
            StatusCode::kCorruption);
}

TEST(TextFilesTest, ThePartOfPartitionZeroHoldsTheTextsOfAnEdgeAttribute) {
  Manifest manifest;
  for (const char* const name : {"memo.p0000", "memo.p0001", "title"}) {
    ArrayEntry entry;
    entry.name = name;
    entry.attributes = {{std::string(kTypeAttribute), std::string(kTypeText)}};
    if (entry.name != "title")
      entry.attributes.insert(entry.attributes.begin(),
                              {std::string(kDimensionAttribute), "edge_" + entry.name.substr(5)});
    manifest.arrays.push_back(entry);
  }
  EXPECT_EQ(HolderOfTexts(manifest, manifest.arrays[1]), &manifest.arrays[0]);
  EXPECT_EQ(HolderOfTexts(manifest, manifest.arrays[0]), &manifest.arrays[0]);
  EXPECT_EQ(HolderOfTexts(manifest, manifest.arrays[2]), &manifest.arrays[2]);
  manifest.arrays[2].attributes.clear();
  EXPECT_EQ(HolderOfTexts(manifest, manifest.arrays[2]), nullptr);
}

}  // namespace
}  // namespace rhizome
