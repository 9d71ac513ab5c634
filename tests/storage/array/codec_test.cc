#include "storage/array/codec.h"

#include <blosc.h>
#include <zstd.h>

#include <cstring>
#include <random>
#include <vector>

#include "rhizome/types.h"
#include "storage/array/codec_table.h"
#include "storage/base/hash.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Buffer = std::vector<std::byte>;

// Returns slowly changing float32 values that compress like typical features.
Buffer SmoothFloats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i / 3) * 0.5F;
  Buffer out(count * sizeof(float));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

Buffer Noise(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

void Put32(Buffer& bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

// Corrects the checksum, so that the checks behind it are tested.
void Reseal(Buffer& encoded) {
  const std::size_t frame = encoded.size() - 4;
  Put32(encoded, frame, Crc32c(std::span(encoded).first(frame)));
}

Buffer Sealed(Buffer frame) {
  frame.resize(frame.size() + 4);
  Reseal(frame);
  return frame;
}

std::string NameOfOfCodec(const ::testing::TestParamInfo<CodecKind>& info) {
  std::string name(CodecName(info.param));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

// Returns the codecs allowed for arrays of a store: all of them, or only those with frames.
std::vector<CodecKind> PublishedCodecs(bool framed) {
  std::vector<CodecKind> kinds;
  for (const CodecEntry& codec : AllCodecs()) {
    if (codec.published && (!framed || codec.compress != nullptr)) kinds.push_back(codec.kind);
  }
  return kinds;
}

class CodecTest : public ::testing::TestWithParam<CodecKind> {
 protected:
  Codec codec() const { return {.kind = GetParam(), .level = 5, .element_bytes = 4}; }
};
INSTANTIATE_TEST_SUITE_P(All, CodecTest, ::testing::ValuesIn(PublishedCodecs(/*framed=*/false)),
                         NameOfOfCodec);

class FramedCodecTest : public CodecTest {};
INSTANTIATE_TEST_SUITE_P(All, FramedCodecTest,
                         ::testing::ValuesIn(PublishedCodecs(/*framed=*/true)), NameOfOfCodec);

class BloscTest : public CodecTest {};
INSTANTIATE_TEST_SUITE_P(All, BloscTest,
                         ::testing::Values(CodecKind::kBloscLz4, CodecKind::kBloscZstd),
                         NameOfOfCodec);

TEST_P(CodecTest, DecodingGivesBackAnyBytesAtAnySizeAndLevel) {
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t count : {1, 2, 16, 31, 32, 33, 1000, 4096, 100'000}) {
    for (const Buffer& raw : {SmoothFloats(count), Noise(count, random())}) {
      Codec used = codec();
      used.level = 1 + static_cast<int>(random() % 9);
      used.element_bytes = std::size_t{1} << (random() % 4);
      const Result<Buffer> encoded = EncodeChunk(used, raw);
      ASSERT_OK(encoded);
      EXPECT_LE(encoded->size(), MaxEncodedBytes(used, raw.size()));
      Buffer out(raw.size());
      ASSERT_OK(DecodeChunk(used, *encoded, out));
      EXPECT_EQ(out, raw);
    }
  }
}

TEST_P(CodecTest, WrongDecodedSizeIsCorruption) {
  const Buffer raw = SmoothFloats(1000);
  const Result<Buffer> encoded = EncodeChunk(codec(), raw);
  ASSERT_OK(encoded);
  for (const std::size_t size : {std::size_t{0}, raw.size() - 1, raw.size() + 1, raw.size() * 2}) {
    Buffer out(size);
    EXPECT_STATUS(DecodeChunk(codec(), *encoded, out), kCorruption);
  }
}

TEST_P(FramedCodecTest, CompressesSmoothData) {
  const Buffer raw = SmoothFloats(10'000);
  EXPECT_LT(EncodeChunk(codec(), raw)->size(), raw.size() / 2);
}

TEST_P(FramedCodecTest, EveryFlippedBitAndEveryTruncationIsCorruption) {
  const Buffer raw = SmoothFloats(500);
  const Buffer encoded = *EncodeChunk(codec(), raw);
  Buffer out(raw.size());
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Buffer bad = encoded;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    ASSERT_EQ(DecodeChunk(codec(), bad, out).code(), StatusCode::kCorruption) << "bit " << bit;
  }
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    const Buffer bad(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_EQ(DecodeChunk(codec(), bad, out).code(), StatusCode::kCorruption) << "length " << size;
  }
}

// A forger can make the checksum fit. Even then the decoder must stay inside `out`; the address
// sanitizer checks this.
TEST_P(FramedCodecTest, ForgedFramesNeverWriteOutside) {
  std::mt19937_64 random(testing::TestSeed());
  const Buffer raw = SmoothFloats(500);
  const Buffer encoded = *EncodeChunk(codec(), raw);
  for (int i = 0; i < 5000; ++i) {
    Buffer bad = encoded;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const std::size_t bit = random() % (8 * (bad.size() - 4));
      bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    }
    Reseal(bad);
    Buffer out(raw.size());
    const Status status = DecodeChunk(codec(), bad, out);
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kCorruption) << status.ToString();
  }
}

TEST_P(FramedCodecTest, OptionsOutOfRangeAreRefused) {
  const Buffer raw = SmoothFloats(16);
  for (const int level : {-1, 0, 20, 100}) {
    Codec bad = codec();
    bad.level = level;
    EXPECT_STATUS(EncodeChunk(bad, raw), kInvalidArgument);
  }
  EXPECT_STATUS(EncodeChunk(codec(), {}), kInvalidArgument);
  EXPECT_STATUS(EncodeChunk(codec(), Buffer(kMaxChunkBytes + 1)), kInvalidArgument);
}

// Every field of the 16-byte header is checked. The offsets are those in FORMAT.md.
TEST_P(BloscTest, ForgedHeaderFieldsAreCorruption) {
  const Buffer raw = SmoothFloats(1000);
  const Buffer encoded = *EncodeChunk(codec(), raw);
  Buffer out(raw.size());
  const auto refused = [&](std::size_t at, std::uint32_t value, std::size_t bytes) {
    Buffer bad = encoded;
    std::memcpy(bad.data() + at, &value, bytes);
    Reseal(bad);
    EXPECT_STATUS(DecodeChunk(codec(), bad, out), kCorruption);
  };
  refused(0, 1, 1);  // frame version
  refused(0, 3, 1);
  refused(1, 2, 1);           // codec's version
  refused(3, 0, 1);           // type size
  refused(4, 0x7FFFFFFF, 4);  // decoded bytes: a decompression bomb
  refused(4, 0, 4);
  refused(4, 3999, 4);
  refused(8, 0, 4);  // block size
  refused(8, 4001, 4);
  refused(8, 0xFFFFFFFF, 4);
  refused(12, 16, 4);  // frame length
  refused(12, 0xFFFFFFFF, 4);
  const auto flags = static_cast<std::uint32_t>(encoded[2]);
  refused(2, flags | 0x08, 1);  // reserved flag
  for (const std::uint32_t format : {0U, 2U, 3U, 5U, 6U, 7U})
    refused(2, (flags & 0x1F) | format << 5, 1);
}

// Real frames of compressors that are not allowed, including the one with a known overflow.
TEST_P(BloscTest, FramesOfOtherCompressorsAreRefused) {
  const Buffer raw = SmoothFloats(4000);
  Buffer out(raw.size());
  for (const char* name : {"blosclz", "zlib"}) {
    for (const std::size_t size : {std::size_t{64}, raw.size()}) {  // 64: stored, not compressed
      Buffer frame(raw.size() + BLOSC_MAX_OVERHEAD);
      const int length = blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, size, raw.data(), frame.data(),
                                            frame.size(), name, 0, 1);
      if (length < 0) continue;  // this build of Blosc lacks the compressor
      frame.resize(static_cast<std::size_t>(length));
      EXPECT_STATUS(DecodeChunk(codec(), Sealed(frame), std::span(out).first(size)), kCorruption);
    }
  }
}

TEST(BloscCodecTest, ElementSizesThatBloscCannotShuffleAreRefused) {
  const Buffer raw = SmoothFloats(16);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{256}}) {
    const Codec bad = {.kind = CodecKind::kBloscLz4, .level = 1, .element_bytes = bytes};
    EXPECT_STATUS(EncodeChunk(bad, raw), kInvalidArgument);
  }
}

TEST(BloscCodecTest, FramesOfTheOtherAllowedCodecAreRefused) {
  const Buffer raw = SmoothFloats(1000);
  Buffer out(raw.size());
  const Buffer lz4 = *EncodeChunk({.kind = CodecKind::kBloscLz4}, raw);
  EXPECT_STATUS(DecodeChunk({.kind = CodecKind::kBloscZstd}, lz4, out), kCorruption);
  EXPECT_STATUS(DecodeChunk({.kind = CodecKind::kZstd}, lz4, out), kCorruption);
}

// TensorStore writes zstd frames without a content size.
TEST(ZstdCodecTest, AFrameWithoutContentSizeIsRead) {
  const Buffer raw = SmoothFloats(1000);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  Buffer frame(ZSTD_compressBound(raw.size()));
  const std::size_t length =
      ZSTD_compress2(context, frame.data(), frame.size(), raw.data(), raw.size());
  ZSTD_freeCCtx(context);
  ASSERT_EQ(ZSTD_isError(length), 0U);
  frame.resize(length);
  ASSERT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), ZSTD_CONTENTSIZE_UNKNOWN);
  const Codec codec = {.kind = CodecKind::kZstd};
  Buffer out(raw.size());
  ASSERT_OK(DecodeChunk(codec, Sealed(frame), out));
  EXPECT_EQ(out, raw);
  Buffer wrong(raw.size() + 1);
  EXPECT_STATUS(DecodeChunk(codec, Sealed(frame), wrong), kCorruption);
}

TEST(ZstdCodecTest, SkippableAndTrailingFramesAreRefused) {
  const Codec codec = {.kind = CodecKind::kZstd};
  const Buffer raw = SmoothFloats(1000);
  Buffer frame = *EncodeChunk(codec, raw);
  frame.resize(frame.size() - 4);
  Buffer skippable(8 + 3);
  Put32(skippable, 0, 0x184D2A50);
  Put32(skippable, 4, 3);

  Buffer out(raw.size());
  Buffer in_front = skippable;
  in_front.insert(in_front.end(), frame.begin(), frame.end());
  EXPECT_STATUS(DecodeChunk(codec, Sealed(in_front), out), kCorruption);
  Buffer behind = frame;
  behind.insert(behind.end(), skippable.begin(), skippable.end());
  EXPECT_STATUS(DecodeChunk(codec, Sealed(behind), out), kCorruption);
}

// 64 MiB of zeros compress to a few KiB. The frame is valid, but decodes to more than the shape
// allows.
TEST(ZstdCodecTest, ABombIsRefusedByItsClaim) {
  const Buffer zeros(16 << 20);
  const Codec codec = {.kind = CodecKind::kZstd};
  const Buffer encoded = *EncodeChunk(codec, zeros);
  ASSERT_LT(encoded.size(), 4096U);
  Buffer out(4096);
  const Status status = DecodeChunk(codec, encoded, out);
  EXPECT_STATUS(status, kCorruption);
  EXPECT_NE(status.message().find("16777216"), std::string::npos) << status.message();
}

TEST(CodecNameTest, NamesParseBack) {
  for (const char* name : {"raw", "zstd", "blosc-lz4", "blosc-zstd"}) {
    const auto kind = ParseCodec(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(CodecName(*kind), name);
  }
  EXPECT_FALSE(ParseCodec("blosclz").has_value());
  EXPECT_FALSE(ParseCodec("blosc-blosclz").has_value());
}

TEST(CodecNameTest, UnknownCodecNumbersAreErrors) {
  const Codec codec = {.kind = static_cast<CodecKind>(77)};
  Buffer out(16);
  EXPECT_STATUS(EncodeChunk(codec, out), kInvalidArgument);
  EXPECT_STATUS(DecodeChunk(codec, Buffer(20), out), kCorruption);
}

}  // namespace
}  // namespace rhizome
