#include "storage/array/zarr_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "storage/array/codec.h"
#include "storage/base/hash.h"
#include "testing/testing.h"

// Tests of ZarrSource: arrays written by our encoder, chunks and shards in the style of other
// writers, metadata that is damaged or not supported, and single-bit damage.

namespace rhizome {
namespace {

constexpr std::uint64_t kRows = 21;
constexpr std::uint64_t kDim = 3;
constexpr std::uint64_t kChunkRows = 8;

std::string Metadata(const std::string& codecs, const std::string& more = "") {
  return fmt::format(
      R"({{"zarr_format": 3, "node_type": "array", "shape": [{}, {}], "data_type": "int32",
"chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{}, {}]}}}},
"chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "."}}}},
"fill_value": -5, "codecs": [{}], "attributes": {{}}{}}})",
      kRows, kDim, kChunkRows, kDim, codecs, more);
}

constexpr const char* kBytes = R"({"name": "bytes", "configuration": {"endian": "little"}})";

void WriteOfZarrSource(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::int32_t ValueAt(std::uint64_t row, std::uint64_t column) {
  return static_cast<std::int32_t>(row * 100 + column) - 50;
}

/// Writes an array with our own encoder, whose chunks end with a crc32c.
void WriteArrayOfZarrSource(const Path& folder, CodecKind kind, const std::string& codec) {
  std::filesystem::create_directories(folder);
  WriteOfZarrSource(folder / "zarr.json",
                    Metadata(fmt::format(R"({}, {}, "crc32c")", kBytes, codec)));
  for (std::uint64_t chunk = 0; chunk * kChunkRows < kRows; ++chunk) {
    std::vector<std::int32_t> values(kChunkRows * kDim);
    for (std::uint64_t i = 0; i < values.size(); ++i)
      values[i] = ValueAt(chunk * kChunkRows + i / kDim, i % kDim);
    const auto encoded = EncodeChunk({.kind = kind, .level = 5, .element_bytes = 4},
                                     std::as_bytes(std::span(values)));
    ASSERT_OK(encoded);
    WriteOfZarrSource(folder / fmt::format("c.{}.0", chunk),
                      {reinterpret_cast<const char*>(encoded->data()), encoded->size()});
  }
}

/// Returns all values, or the error.
Result<std::vector<std::int32_t>> ReadAllOfZarrSource(const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const auto source, ZarrSource::Open(FileSystem::Posix(), folder));
  std::vector<std::int32_t> all;
  // A damaged document may contain any shape, so only small arrays are read.
  if (source->format().dtype != DataType::kInt32 || source->format().dim > 64 ||
      source->format().rows > 4096)
    return all;
  for (std::uint64_t strip = 0; strip < source->format().strips(); ++strip) {
    std::vector<std::int32_t> values(source->RowsInStrip(strip) * source->format().dim);
    RHIZOME_RETURN_IF_ERROR(source->ReadStrip(strip, std::as_writable_bytes(std::span(values))));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

constexpr const char* kZstd = R"({"name": "zstd", "configuration": {"level": 5}})";
constexpr const char* kBlosc = R"({"name": "blosc", "configuration": {"cname": "lz4"}})";

TEST(ZarrSourceTest, ReadsWhatIsThereAndFillsTheRest) {
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "z", CodecKind::kZstd, kZstd);
  WriteArrayOfZarrSource(dir / "b", CodecKind::kBloscLz4, kBlosc);
  for (const char* name : {"z", "b"}) {
    std::filesystem::remove(dir / name / "c.1.0");
    const auto values = ReadAllOfZarrSource(dir / name);
    ASSERT_OK(values);
    ASSERT_EQ(values->size(), kRows * kDim);
    for (std::uint64_t i = 0; i < values->size(); ++i) {
      const std::uint64_t row = i / kDim;
      EXPECT_EQ((*values)[i], row / kChunkRows == 1 ? -5 : ValueAt(row, i % kDim)) << name << i;
    }
  }
}

// A link in an untrusted array could expose any file of the user. A dangling link would look like
// chunks of the fill value.
TEST(ZarrSourceTest, LinksInTheFolderAreNotFollowed) {
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "other", CodecKind::kZstd, kZstd);
  std::filesystem::create_directories(dir / "secret/0");
  std::filesystem::copy(dir / "other/c.0.0", dir / "secret/0/0");
  for (const char* target : {"secret", "nowhere"}) {
    SCOPED_TRACE(target);
    const Path array = dir / (std::string("z-") + target);
    std::filesystem::create_directory(array);
    std::string metadata = Metadata(fmt::format(R"({}, {}, "crc32c")", kBytes, kZstd));
    metadata.replace(metadata.find(R"("separator": ".")"), 16, R"("separator": "/")");
    WriteOfZarrSource(array / "zarr.json", metadata);
    std::filesystem::create_directory_symlink(dir / target, array / "c");
    const auto read = ReadAllOfZarrSource(array);
    EXPECT_STATUS(read, kInvalidArgument);
    EXPECT_NE(testing::AsStatus(read).message().find("symbolic link"), std::string::npos);
  }
  // Links in the path to the folder are allowed, since the user chose the path.
  std::filesystem::create_directory_symlink("other", dir / "way");
  EXPECT_OK(ReadAllOfZarrSource(dir / "way"));
}

TEST(ZarrSourceTest, AnotherCodecThanTheFrameSaysIsRefused) {
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "x", CodecKind::kZstd, kBlosc);
  WriteArrayOfZarrSource(dir / "y", CodecKind::kBloscZstd, kBlosc);
  EXPECT_STATUS(ReadAllOfZarrSource(dir / "x"), kInvalidArgument);
  EXPECT_STATUS(ReadAllOfZarrSource(dir / "y"), kInvalidArgument);
  EXPECT_STATUS(ReadAllOfZarrSource(dir / "absent"), kNotFound);
}

TEST(ZarrSourceTest, EveryChangedBitOfAChunkIsNoticed) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "z", CodecKind::kZstd, kZstd);
  const Path path = dir / "z/c.2.0";
  std::ifstream file(path, std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(file), {}};
  for (int i = 0; i < 200; ++i) {
    std::string bytes = sound;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    WriteOfZarrSource(path, bytes);
    EXPECT_STATUS(ReadAllOfZarrSource(dir / "z"), kInvalidArgument);
    bytes = sound.substr(0, random() % sound.size());
    WriteOfZarrSource(path, bytes);
    EXPECT_STATUS(ReadAllOfZarrSource(dir / "z"), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, SpoiltMetadataNeverDoesHarm) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "b", CodecKind::kBloscLz4, kBlosc);
  const std::string sound = Metadata(fmt::format(R"({}, {}, "crc32c")", kBytes, kBlosc));
  const std::string digits = "0123456789-[]{},\":x";
  for (int i = 0; i < 500; ++i) {
    std::string text = sound;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
      text[random() % text.size()] = digits[random() % digits.size()];
    WriteOfZarrSource(dir / "b/zarr.json", text);
    const auto values = ReadAllOfZarrSource(dir / "b");
    if (!values) {
      EXPECT_EQ(values.error().code(), StatusCode::kInvalidArgument) << values.error().ToString();
    }
  }
}

// --- Chunks in the style of other writers: one chunk of 8 rows and 3 columns each.

using Raw = std::string;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

template <typename Element>
Raw BytesOfZarrSource(const std::vector<Element>& values, bool big_endian) {
  Raw bytes;
  for (const Element& value : values) {
    Raw one(reinterpret_cast<const char*>(&value), sizeof(value));
    static_assert(std::endian::native == std::endian::little);
    if (big_endian) std::reverse(one.begin(), one.end());
    bytes += one;
  }
  return bytes;
}

TEST(ZarrSourceTest, BytesOfTheOtherOrderAreTurned) {
  const testing::TempDir dir;
  std::vector<std::int32_t> values(kChunkRows * kDim);
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = ValueAt(i / kDim, i % kDim);
  for (const std::string order : {"little", "big"}) {
    const Path folder = dir / order;
    std::filesystem::create_directories(folder);
    WriteOfZarrSource(folder / "zarr.json", Metadata(Replaced(kBytes, "little", order)));
    WriteOfZarrSource(folder / "c.0.0", BytesOfZarrSource(values, order == "big"));
    const auto read = ReadAllOfZarrSource(folder);
    ASSERT_OK(read);
    for (std::uint64_t i = 0; i < read->size(); ++i)
      EXPECT_EQ((*read)[i], i < values.size() ? values[i] : -5) << order << i;
    // The content is longer than a chunk.
    WriteOfZarrSource(folder / "c.0.0", BytesOfZarrSource(values, order == "big") + "x");
    EXPECT_STATUS(ReadAllOfZarrSource(folder), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, DoublesStayDoubles) {
  const testing::TempDir dir;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values(kChunkRows * kDim, 0.1);
  values[1] = -kInfinity;
  values[2] = std::numeric_limits<double>::quiet_NaN();
  values[3] = 1e-180;
  values[4] = 1e300;
  std::string metadata = Replaced(Metadata(kBytes), "int32", "float64");
  for (const auto& [fill, filled] :
       std::vector<std::pair<std::string, double>>{{R"("Infinity")", kInfinity},
                                                   {R"("-Infinity")", -kInfinity},
                                                   {R"("0x4000000000000000")", 2.0},
                                                   {"1e39", 1e39},
                                                   {"7", 7.0}}) {
    SCOPED_TRACE(fill);
    WriteOfZarrSource(dir / "zarr.json", Replaced(metadata, "-5", fill));
    WriteOfZarrSource(dir / "c.0.0", BytesOfZarrSource(values, false));
    const auto source = ZarrSource::Open(FileSystem::Posix(), dir / ".");
    ASSERT_OK(source);
    ASSERT_EQ((*source)->format().dtype, DataType::kFloat64);
    std::vector<double> read(kChunkRows * kDim);
    const auto out = std::as_writable_bytes(std::span(read));
    ASSERT_OK((*source)->ReadStrip(0, out));
    EXPECT_EQ(std::memcmp(read.data(), values.data(), out.size()), 0);
    ASSERT_OK((*source)->ReadStrip(1, out));
    EXPECT_EQ(read, std::vector<double>(kChunkRows * kDim, filled));
  }
  for (const char* fill : {R"("1e3")", R"("0x40")", "true", "null"}) {
    WriteOfZarrSource(dir / "zarr.json", Replaced(metadata, "-5", fill));
    SCOPED_TRACE(fill);
    EXPECT_STATUS(ZarrSource::Open(FileSystem::Posix(), dir / "."), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, Uint64IsReadIfItsValuesFit) {
  const testing::TempDir dir;
  for (const bool big_endian : {false, true}) {
    const std::string codec = big_endian ? Replaced(kBytes, "little", "big") : std::string(kBytes);
    WriteOfZarrSource(dir / "zarr.json",
                      Replaced(Replaced(Metadata(codec), "int32", "uint64"), "-5", "5"));
    std::vector<std::uint64_t> values(kChunkRows * kDim, INT64_MAX);
    WriteOfZarrSource(dir / "c.0.0", BytesOfZarrSource(values, big_endian));
    const auto source = ZarrSource::Open(FileSystem::Posix(), dir / ".");
    ASSERT_OK(source);
    ASSERT_EQ((*source)->format().dtype, DataType::kInt64);
    std::vector<std::int64_t> read(kChunkRows * kDim);
    const auto out = std::as_writable_bytes(std::span(read));
    ASSERT_OK((*source)->ReadStrip(0, out));
    EXPECT_EQ(read, std::vector<std::int64_t>(kChunkRows * kDim, INT64_MAX));
    values[4] = std::uint64_t{1} << 63;
    WriteOfZarrSource(dir / "c.0.0", BytesOfZarrSource(values, big_endian));
    const auto beyond = ZarrSource::Open(FileSystem::Posix(), dir / ".");
    ASSERT_OK(beyond);
    const Status status = (*beyond)->ReadStrip(0, out);
    EXPECT_STATUS(status, kInvalidArgument);
    EXPECT_NE(status.message().find("row 1, column 1"), std::string::npos) << status.message();
  }
}

TEST(ZarrSourceTest, IntegersOfEachWidthAreFilledIfTheyFit) {
  struct Case {
    const char* type;
    const char* fill;
    bool fits;
  };
  const Case cases[] = {{"uint8", "255", true},
                        {"uint8", "256", false},
                        {"uint8", "-1", false},
                        {"uint32", "4294967295", true},
                        {"uint32", "4294967296", false},
                        {"int32", "-2147483648", true},
                        {"int32", "-2147483649", false},
                        {"int32", "1.5", false},
                        {"int64", "-9223372036854775808", true},
                        {"int64", "9223372036854775808", false},
                        {"uint64", "9223372036854775807", true},
                        {"uint64", "9223372036854775808", false},
                        {"int16", "-32768", true},
                        {"int16", "32768", false},
                        {"int8", "127", true},
                        {"int8", "-129", false},
                        {"bool", "true", true},
                        {"bool", "false", true},
                        {"bool", "1", false}};
  for (const Case& one : cases) {
    const std::string text =
        Replaced(Replaced(Metadata(kBytes), "int32", one.type), "-5", one.fill);
    EXPECT_EQ(ParseZarrSource(text).has_value(), one.fits) << one.type << " " << one.fill;
  }
}

// Wraps bytes into gzip (RFC 1952) as one stored block, without a compressor.
Raw StoredGzip(const Raw& bytes, std::uint32_t crc32) {
  const auto little = [](std::uint32_t value, int count) {
    Raw out;
    for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return Raw("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11) + little(size, 2) + little(~size, 2) + bytes +
         little(crc32, 4) + little(size, 4);
}

/// Computes the CRC-32 of gzip bit by bit.
std::uint32_t GzipCrc(const Raw& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

TEST(ZarrSourceTest, GzipIsUndoneAndItsDamageNoticed) {
  const testing::TempDir dir;
  WriteOfZarrSource(
      dir / "zarr.json",
      Metadata(std::string(kBytes) + R"(, {"name": "gzip", "configuration": {"level": 1}})"));
  std::vector<std::int32_t> values(kChunkRows * kDim);
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = ValueAt(i / kDim, i % kDim);
  const Raw plain = BytesOfZarrSource(values, false);
  const Raw sound = StoredGzip(plain, GzipCrc(plain));
  WriteOfZarrSource(dir / "c.0.0", sound);
  const auto read = ReadAllOfZarrSource(dir / ".");
  ASSERT_OK(read);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), read->begin()));
  for (const Raw& bad : {StoredGzip(plain, GzipCrc(plain) + 1), sound + "x", sound.substr(1),
                         sound.substr(0, sound.size() - 1), StoredGzip(plain + "more", 0)}) {
    WriteOfZarrSource(dir / "c.0.0", bad);
    EXPECT_STATUS(ReadAllOfZarrSource(dir / "."), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, AnArrayOfVersion2IsNamed) {
  const testing::TempDir dir;
  WriteOfZarrSource(dir / ".zarray", "{}");
  const auto source = ZarrSource::Open(FileSystem::Posix(), dir / ".");
  EXPECT_STATUS(source, kInvalidArgument);
  EXPECT_NE(source.error().message().find("Zarr v2"), std::string::npos);
}

TEST(ZarrSourceTest, AStripThatIsNotThereIsRefused) {
  const testing::TempDir dir;
  WriteArrayOfZarrSource(dir / "z", CodecKind::kZstd, kZstd);
  const auto source = ZarrSource::Open(FileSystem::Posix(), dir / "z");
  ASSERT_OK(source);
  std::vector<std::byte> out(kChunkRows * kDim * 4);
  EXPECT_STATUS((*source)->ReadStrip(3, out), kInvalidArgument);
  EXPECT_STATUS((*source)->ReadStrip(2, out), kInvalidArgument);  // the last one is shorter
  EXPECT_OK((*source)->ReadStrip(2, std::span(out).first(5 * kDim * 4)));
}

TEST(ZarrSourceTest, WhatIsNotUnderstoodIsRefused) {
  EXPECT_OK(ParseZarrSource(Metadata(kBytes)));
  EXPECT_OK(ParseZarrSource(Metadata(kBytes, R"(, "x": {"must_understand": false})")));
  EXPECT_STATUS(ParseZarrSource(Metadata(kBytes, R"(, "x": {})")), kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource(Metadata(R"({"name": "transpose"})")), kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource(Metadata(fmt::format("{}, {}, {}", kBytes, kZstd, kBlosc))),
                kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource("[" + std::string(100, '[')), kInvalidArgument);
}

// --- Shards of 16 rows, with inner chunks of 4 rows and 2 columns. 21 rows and 3 columns fill two
// shards.

constexpr ShardIndexFormat kIndex{.inner_chunks = 8};

std::string ShardedMetadata(const std::string& configuration, const std::string& behind = "") {
  std::string text = Metadata(fmt::format(
      R"({{"name": "sharding_indexed", "configuration": {{{}}}}}{})", configuration, behind));
  const std::string grid = fmt::format(R"("chunk_shape": [{}, {}])", kChunkRows, kDim);
  return text.replace(text.find(grid), grid.size(), R"("chunk_shape": [16, 4])");
}

constexpr const char* kShards =
    R"("chunk_shape": [4, 2], "codecs": [{"name": "bytes"}, "crc32c"],
"index_codecs": [{"name": "bytes"}, "crc32c"], "index_location": "end")";

/// Writes an array of two shards whose inner chunks are in reverse order. The odd inner chunks of
/// the second shard are missing.
void WriteShards(const Path& folder) {
  std::filesystem::create_directories(folder);
  WriteOfZarrSource(folder / "zarr.json", ShardedMetadata(kShards));
  for (std::uint64_t shard = 0; shard < 2; ++shard) {
    std::string file;
    std::vector<InnerRange> ranges(8);
    for (std::uint64_t inner = 8; inner-- > 0;) {
      if (shard == 1 && inner % 2 == 1) continue;
      std::vector<std::int32_t> values(8);
      for (std::uint64_t i = 0; i < 8; ++i)
        values[i] = ValueAt(shard * 16 + inner / 2 * 4 + i / 2, inner % 2 * 2 + i % 2);
      const auto bytes = std::as_bytes(std::span(values));
      const std::uint32_t crc = Crc32c(bytes);
      ranges[inner] = {file.size(), 36};
      file.append(reinterpret_cast<const char*>(bytes.data()), 32);
      file.append(reinterpret_cast<const char*>(&crc), 4);
    }
    const auto index = EncodeShardIndex(kIndex, ranges);
    file.append(reinterpret_cast<const char*>(index.data()), index.size());
    WriteOfZarrSource(folder / fmt::format("c.{}.0", shard), file);
  }
}

std::string ReadFileText(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ZarrSourceTest, ShardsAreReadAndMissingChunksFilled) {
  const testing::TempDir dir;
  WriteShards(dir / "s");
  auto values = ReadAllOfZarrSource(dir / "s");
  ASSERT_OK(values);
  ASSERT_EQ(values->size(), kRows * kDim);
  for (std::uint64_t i = 0; i < values->size(); ++i) {
    const std::uint64_t row = i / kDim;
    const bool missing = row >= 16 && i % kDim == 2;
    EXPECT_EQ((*values)[i], missing ? -5 : ValueAt(row, i % kDim)) << i;
  }
  std::filesystem::remove(dir / "s/c.1.0");
  values = ReadAllOfZarrSource(dir / "s");
  ASSERT_OK(values);
  for (std::uint64_t i = 16 * kDim; i < values->size(); ++i) EXPECT_EQ((*values)[i], -5) << i;
}

TEST(ZarrSourceTest, DamagedInnerChunkIsNamedWithItsBytes) {
  const testing::TempDir dir;
  WriteShards(dir / "s");
  std::string bytes = ReadFileText(dir / "s/c.0.0");
  bytes[5 * 36 + 7] ^= 1;  // in inner chunk 2, the sixth in the file
  WriteOfZarrSource(dir / "s/c.0.0", bytes);
  const auto values = ReadAllOfZarrSource(dir / "s");
  ASSERT_FALSE(values.has_value());
  EXPECT_STATUS(values, kInvalidArgument);
  EXPECT_NE(values.error().message().find("c.0.0: inner chunk 2, bytes [180, 216)"),
            std::string::npos)
      << values.error().message();
}

TEST(ZarrSourceTest, EveryChangedBitOrCutOfAShardIsNoticed) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir dir;
  WriteShards(dir / "s");
  const std::string sound = ReadFileText(dir / "s/c.0.0");
  for (int i = 0; i < 60; ++i) {
    std::string bytes = sound;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    WriteOfZarrSource(dir / "s/c.0.0", bytes);
    EXPECT_STATUS(ReadAllOfZarrSource(dir / "s"), kInvalidArgument);
    WriteOfZarrSource(dir / "s/c.0.0", sound.substr(0, random() % sound.size()));
    EXPECT_STATUS(ReadAllOfZarrSource(dir / "s"), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, ShardsThatAreNotUnderstoodAreRefused) {
  const auto refused = [](std::string_view from, std::string_view to, std::string_view why,
                          const std::string& behind = "") {
    std::string text = kShards;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    const auto format = ParseZarrSource(ShardedMetadata(text, behind));
    ASSERT_FALSE(format.has_value());
    EXPECT_STATUS(format, kInvalidArgument);
    EXPECT_NE(format.error().message().find(why), std::string::npos) << format.error().message();
  };
  ASSERT_OK(ParseZarrSource(ShardedMetadata(kShards)));
  refused("[4, 2]", "[3, 2]", "the shard is not a multiple of it");
  refused("[4, 2]", "[4, 0]", "an extent is 0");
  refused("[4, 2]", "[4]", "does not have one entry per dimension of the shape");
  refused("\"end\"", "\"middle\"", "neither start nor end");
  refused("{\"name\": \"bytes\"}, \"crc32c\"],", "{\"name\": \"sharding_indexed\"}],",
          "shards within shards");
  refused("\"index_codecs\": [{\"name\": \"bytes\"}, \"crc32c\"]",
          "\"index_codecs\": [{\"name\": \"bytes\"}, \"gzip\"]", "'gzip' is not bytes or crc32c");
  refused("\"index_codecs\": [{\"name\": \"bytes\"}, \"crc32c\"]", "\"index_codecs\": []",
          "not a list of one to eight codecs");
  refused("", "", "codecs after sharding_indexed", ", \"crc32c\"");
}

TEST(ZarrSourceTest, IndexesThatNoMemoryHoldsAreRefused) {
  const auto with_grid = [](const std::string& grid, const std::string& inner,
                            const std::string& shape) {
    std::string text = ShardedMetadata(kShards);
    text.replace(text.find("[16, 4]"), 7, grid);
    text.replace(text.find("[4, 2]"), 6, inner);
    const std::string old = fmt::format("[{}, {}]", kRows, kDim);
    return text.replace(text.find(old), old.size(), shape);
  };
  EXPECT_OK(ParseZarrSource(with_grid("[4194304, 1]", "[1, 1]", "[21, 3]")));
  EXPECT_STATUS(ParseZarrSource(with_grid("[4194305, 1]", "[1, 1]", "[21, 3]")), kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource(
                    with_grid("[18446744073709551615, 18446744073709551615]", "[1, 1]", "[21, 3]")),
                kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource(with_grid("[4194304, 1]", "[1, 1]", "[21, 5]")), kInvalidArgument);
  EXPECT_STATUS(ParseZarrSource(with_grid("[1, 1]", "[1, 1]", "[21, 1000000000]")),
                kInvalidArgument);
}

TEST(ZarrSourceTest, FillValuesMayBeBits) {
  const auto fill = [](const std::string& dtype, const std::string& value) {
    std::string text = Metadata(kBytes);
    text.replace(text.find("\"int32\""), 7, fmt::format("\"{}\"", dtype));
    return text.replace(text.find("-5,"), 3, fmt::format("\"{}\",", value));
  };
  const auto single = ParseZarrSource(fill("float32", "0xc0200000"));
  ASSERT_OK(single);
  float value = 0;
  std::memcpy(&value, single->fill.data(), sizeof(value));
  EXPECT_EQ(value, -2.5F);
  const auto wide = ParseZarrSource(fill("float64", "0xc004000000000000"));
  ASSERT_OK(wide);
  double wide_value = 0;
  std::memcpy(&wide_value, wide->fill.data(), sizeof(wide_value));
  EXPECT_EQ(wide_value, -2.5);
  const auto brain = ParseZarrSource(fill("bfloat16", "0xc020"));
  ASSERT_OK(brain);
  std::uint16_t bits = 0;
  std::memcpy(&bits, brain->fill.data(), sizeof(bits));
  EXPECT_EQ(bits, 0xc020);
  EXPECT_OK(ParseZarrSource(fill("float16", "0x7e01")));
  for (const char* bad : {"0xc020000", "c0200000", "0xc0200000 ", "0x-c020000", "0xg0200000"})
    EXPECT_STATUS(ParseZarrSource(fill("float32", bad)), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
