#include "storage/base/nonzero.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "rhizome/chunk_array.h"
#include "storage/array/array_rules.h"
#include "storage/array/codec.h"
#include "storage/array/zarr_format.h"
#include "storage/array_fixture.h"
#include "storage/base/hash.h"
#include "storage/io/io_queue.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using Buffer = std::vector<std::byte>;

constexpr Codec kCodec{.kind = CodecKind::kNonzero, .level = 0, .element_bytes = 4};

Buffer BytesOf(const std::vector<std::uint32_t>& elements) {
  Buffer bytes(elements.size() * sizeof(std::uint32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

/// Returns random elements. A fraction `share` of them is not zero.
std::vector<std::uint32_t> RandomElements(std::size_t count, double share,
                                          std::mt19937_64& random) {
  std::vector<std::uint32_t> elements(count);
  std::bernoulli_distribution is_set(share);
  for (std::uint32_t& element : elements) {
    if (is_set(random)) element = static_cast<std::uint32_t>(random());
  }
  return elements;
}

/// Packs elements as FORMAT.md describes, one at a time.
Buffer PackedAsDocumented(const std::vector<std::uint32_t>& elements) {
  std::vector<std::uint64_t> words((elements.size() + 63) / 64);
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] == 0) continue;
    words[i / 64] |= std::uint64_t{1} << (i % 64);
    kept.push_back(elements[i]);
  }
  Buffer bytes(words.size() * 8 + kept.size() * 4);
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), words.size() * 8);
  if (!kept.empty()) std::memcpy(bytes.data() + words.size() * 8, kept.data(), kept.size() * 4);
  return bytes;
}

/// Unpacks from and into allocations of exactly the needed size, so that the address sanitizer
/// detects any access outside.
Status UnpackTightly(const Buffer& frame, Buffer& out) {
  const auto from = std::make_unique<std::byte[]>(frame.size());
  if (!frame.empty()) std::memcpy(from.get(), frame.data(), frame.size());
  const auto to = std::make_unique<std::byte[]>(out.size());
  RHIZOME_RETURN_IF_ERROR(UnpackNonzero({from.get(), frame.size()}, {to.get(), out.size()}));
  if (!out.empty()) std::memcpy(out.data(), to.get(), out.size());
  return Status::Ok();
}

TEST(NonzeroTest, PacksAsDocumentedAndComesBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (std::size_t count = 0; count < 400; count += count < 200 ? 1 : 37) {
    for (const double share : {0.0, 0.02, 0.5, 0.98, 1.0}) {
      const auto elements = RandomElements(count, share, random);
      const Buffer raw = BytesOf(elements);
      Buffer packed(MaxNonzeroBytes(raw.size()));
      packed.resize(PackNonzero(raw, packed));
      ASSERT_EQ(packed, PackedAsDocumented(elements)) << count << " elements, " << share;
      Buffer out(raw.size());
      ASSERT_OK(UnpackTightly(packed, out));
      ASSERT_EQ(out, raw) << count << " elements, " << share;
    }
  }
}

TEST(NonzeroTest, KeepsTheBitsOfNegativeZerosAndNans) {
  std::vector<std::uint32_t> elements(128, 0);
  for (std::size_t i = 0; i < elements.size(); i += 3) elements[i] = 0x80000000U;  // -0.0
  elements[64] = 0x7FC12345U;
  elements[127] = 0xFF800001U;
  const Buffer raw = BytesOf(elements);
  const auto encoded = EncodeChunk(kCodec, raw);
  ASSERT_OK(encoded);
  Buffer out(raw.size());
  ASSERT_OK(DecodeChunk(kCodec, *encoded, out));
  EXPECT_EQ(out, raw);
}

TEST(NonzeroTest, HalfOfTheZerosAreHalfOfTheBytes) {
  std::mt19937_64 random(testing::TestSeed());
  const Buffer raw = BytesOf(RandomElements(100'000, 0.5, random));
  EXPECT_LT(EncodeChunk(kCodec, raw)->size(), raw.size() * 0.55);
}

TEST(NonzeroTest, WrongLengthsAndBitsAreCorruption) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t count : {1U, 63U, 64U, 65U, 200U}) {
    const auto elements = RandomElements(count, 0.5, random);
    const Buffer packed = PackedAsDocumented(elements);
    Buffer out(count * 4);
    for (std::size_t size = 0; size < packed.size() + 9; ++size) {
      if (size == packed.size()) continue;
      Buffer other = packed;
      other.resize(size);
      EXPECT_STATUS(UnpackTightly(other, out), kCorruption);
    }
    // One bit more or less changes the number of elements.
    for (std::size_t bit = 0; bit < (count + 63) / 64 * 64; ++bit) {
      Buffer other = packed;
      other[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      EXPECT_STATUS(UnpackTightly(other, out), kCorruption);
    }
    // The number of bits is correct, but one of them is beyond the last element.
    if (count % 64 != 0 && elements[0] != 0) {
      Buffer other = packed;
      other[0] ^= std::byte{1};
      other[count / 64 * 8 + 7] ^= std::byte{0x80};
      EXPECT_THAT(UnpackTightly(other, out).message(), HasSubstr("beyond the last element"));
    }
    Buffer odd(count * 4 - 1);
    EXPECT_STATUS(UnpackTightly(packed, odd), kCorruption);
  }
}

TEST(NonzeroTest, EveryFlippedBitOfAChunkIsCorruption) {
  std::mt19937_64 random(testing::TestSeed());
  const Buffer raw = BytesOf(RandomElements(150, 0.5, random));
  const Buffer encoded = *EncodeChunk(kCodec, raw);
  Buffer out(raw.size());
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Buffer bad = encoded;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_STATUS(DecodeChunk(kCodec, bad, out), kCorruption);
  }
}

TEST(NonzeroTest, OtherElementsAreRefused) {
  EXPECT_STATUS(EncodeChunk({.kind = CodecKind::kNonzero, .element_bytes = 8}, Buffer(64)),
                kInvalidArgument);
  EXPECT_STATUS(EncodeChunk(kCodec, Buffer(63)), kInvalidArgument);
  EXPECT_STATUS(EncodeChunk(kCodec, {}), kInvalidArgument);
}

// Zarr has no such codec, so other programs could not read a published array that uses it.
TEST(NonzeroTest, IsForArraysOfAJobOnly) {
  EXPECT_EQ(CodecName(CodecKind::kNonzero), "nonzero");
  EXPECT_FALSE(ParseCodec("nonzero").has_value());
  ArrayEntry entry = testing::MakeEntry("x", 1000, 3, DataType::kFloat32, ArrayLayout::kChunk,
                                        CodecKind::kNonzero, 128);
  EXPECT_OK(CheckArrayEntry(entry));
  EXPECT_THAT(CheckStoredArray(entry).message(), HasSubstr("other programs cannot read it"));
  entry.codec.kind = CodecKind::kZstd;
  EXPECT_OK(CheckStoredArray(entry));
  entry.codec.kind = CodecKind::kNonzero;
  entry.dtype = DataType::kFloat16;
  EXPECT_STATUS(CheckArrayEntry(entry), kInvalidArgument);
  entry.dtype = DataType::kFloat32;
  entry.inner_rows = 64;
  EXPECT_STATUS(CheckArrayEntry(entry), kInvalidArgument);
  entry.inner_rows = 0;
  entry.layout = ArrayLayout::kRow;
  EXPECT_STATUS(CheckArrayEntry(entry), kInvalidArgument);
}

TEST(NonzeroTest, AnArrayIsWrittenAndReadInMemoryThatIsUsedAgain) {
  FileSystem& fs = FileSystem::Posix();
  const testing::TempDir dir;
  const auto written =
      testing::WriteByFormula(fs, dir.path(),
                              testing::MakeEntry("x", 1000, 3, DataType::kFloat32,
                                                 ArrayLayout::kChunk, CodecKind::kNonzero, 128));
  ASSERT_OK(written);
  const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
  ASSERT_OK(array);
  AlignedBuffer room;
  for (const bool direct : {false, true}) {
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      Buffer rows((*array)->RowsInChunk(chunk) * 12);
      const auto read = (*array)->ReadChunk(chunk, rows, {.direct = direct}, &room);
      ASSERT_OK(read);
      EXPECT_GE(room.size_bytes(), *read);
      EXPECT_EQ(rows, testing::RowsByFormula(chunk * 128, (*array)->RowsInChunk(chunk), 12));
    }
  }
}

}  // namespace
}  // namespace rhizome
