#include "rhizome/storage/zarr_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "rhizome/storage/codec.h"
#include "testing/testing.h"

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

void Write(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::int32_t ValueAt(std::uint64_t row, std::uint64_t column) {
  return static_cast<std::int32_t>(row * 100 + column) - 50;
}

/// Writes an array with our own encoder, whose chunks are compressor, then crc32c.
void WriteArray(const Path& folder, CodecKind kind, const std::string& codec) {
  std::filesystem::create_directories(folder);
  Write(folder / "zarr.json", Metadata(fmt::format(R"({}, {}, "crc32c")", kBytes, codec)));
  for (std::uint64_t chunk = 0; chunk * kChunkRows < kRows; ++chunk) {
    std::vector<std::int32_t> values(kChunkRows * kDim);
    for (std::uint64_t i = 0; i < values.size(); ++i)
      values[i] = ValueAt(chunk * kChunkRows + i / kDim, i % kDim);
    const auto encoded = EncodeChunk({.kind = kind, .level = 5, .element_bytes = 4},
                                     std::as_bytes(std::span(values)));
    ASSERT_OK(encoded);
    Write(folder / fmt::format("c.{}.0", chunk),
          {reinterpret_cast<const char*>(encoded->data()), encoded->size()});
  }
}

/// All values, or why not.
Result<std::vector<std::int32_t>> ReadAll(const Path& folder) {
  RHIZOME_ASSIGN_OR_RETURN(const auto source, ZarrSource::Open(FileSystem::Posix(), folder));
  std::vector<std::int32_t> all;
  // A spoilt document may say anything; only what is small is read.
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
  WriteArray(dir / "z", CodecKind::kZstd, kZstd);
  WriteArray(dir / "b", CodecKind::kBloscLz4, kBlosc);
  for (const char* name : {"z", "b"}) {
    std::filesystem::remove(dir / name / "c.1.0");
    const auto values = ReadAll(dir / name);
    ASSERT_OK(values);
    ASSERT_EQ(values->size(), kRows * kDim);
    for (std::uint64_t i = 0; i < values->size(); ++i) {
      const std::uint64_t row = i / kDim;
      EXPECT_EQ((*values)[i], row / kChunkRows == 1 ? -5 : ValueAt(row, i % kDim)) << name << i;
    }
  }
}

TEST(ZarrSourceTest, AnotherCodecThanTheFrameSaysIsRefused) {
  const testing::TempDir dir;
  WriteArray(dir / "x", CodecKind::kZstd, kBlosc);
  WriteArray(dir / "y", CodecKind::kBloscZstd, kBlosc);
  EXPECT_STATUS(ReadAll(dir / "x"), kInvalidArgument);
  EXPECT_STATUS(ReadAll(dir / "y"), kInvalidArgument);
  EXPECT_STATUS(ReadAll(dir / "absent"), kNotFound);
}

TEST(ZarrSourceTest, EveryChangedBitOfAChunkIsNoticed) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir dir;
  WriteArray(dir / "z", CodecKind::kZstd, kZstd);
  const Path path = dir / "z/c.2.0";
  std::ifstream file(path, std::ios::binary);
  const std::string sound{std::istreambuf_iterator<char>(file), {}};
  for (int i = 0; i < 200; ++i) {
    std::string bytes = sound;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    Write(path, bytes);
    EXPECT_STATUS(ReadAll(dir / "z"), kInvalidArgument);
    bytes = sound.substr(0, random() % sound.size());
    Write(path, bytes);
    EXPECT_STATUS(ReadAll(dir / "z"), kInvalidArgument);
  }
}

TEST(ZarrSourceTest, SpoiltMetadataNeverDoesHarm) {
  std::mt19937_64 random(testing::TestSeed());
  const testing::TempDir dir;
  WriteArray(dir / "b", CodecKind::kBloscLz4, kBlosc);
  const std::string sound = Metadata(fmt::format(R"({}, {}, "crc32c")", kBytes, kBlosc));
  const std::string digits = "0123456789-[]{},\":x";
  for (int i = 0; i < 500; ++i) {
    std::string text = sound;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
      text[random() % text.size()] = digits[random() % digits.size()];
    Write(dir / "b/zarr.json", text);
    const auto values = ReadAll(dir / "b");
    if (!values) {
      EXPECT_EQ(values.error().code(), StatusCode::kInvalidArgument) << values.error().ToString();
    }
  }
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

}  // namespace
}  // namespace rhizome
