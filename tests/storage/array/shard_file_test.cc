#include "storage/array/shard_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/manifest_format.h"
#include "storage/array/zarr_format.h"
#include "storage/array_fixture.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"
#include "storage/maintenance/verify_files.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::MakeEntry;
using testing::RowsByFormula;
using testing::TempDir;
using testing::WriteByFormula;

constexpr std::array kCodecs = {CodecKind::kRaw, CodecKind::kZstd, CodecKind::kBloscLz4,
                                CodecKind::kBloscZstd};

FileSystem& fs = FileSystem::Posix();

ArrayEntry Sharded(CodecKind codec, std::uint64_t rows, std::uint64_t chunk_rows,
                   std::uint64_t inner_rows) {
  ArrayEntry entry =
      MakeEntry("x", rows, 3, DataType::kInt32, ArrayLayout::kChunk, codec, chunk_rows);
  entry.inner_rows = inner_rows;
  return entry;
}

std::vector<std::byte> BytesOfShardFile(const Path& path) {
  const auto bytes = ReadWholeFile(fs, path, 1 << 24);
  EXPECT_OK(bytes);
  return bytes ? *bytes : std::vector<std::byte>();
}

void Write(const Path& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Writes rows of random bytes. No codec can shorten them, so all shards have the same lengths.
Result<testing::WrittenArray> WriteNoise(const Path& root, const ArrayEntry& wanted,
                                         std::mt19937_64& random) {
  RHIZOME_ASSIGN_OR_RETURN(auto writer, ChunkArrayWriter::Create(fs, root, wanted));
  for (std::uint64_t chunk = 0; chunk < wanted.chunk_count(); ++chunk) {
    std::vector<std::byte> rows(wanted.chunk_rows * wanted.row_bytes());
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, rows));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto files, writer->Finish());
  return testing::WrittenArray{writer->arrays(), std::move(files)};
}

TEST(ShardFileTest, RowsReturnInEveryCodec) {
  std::mt19937_64 random(testing::TestSeed());
  for (const CodecKind codec : kCodecs) {
    const std::uint64_t inner_rows = 1 + random() % 40;
    const std::uint64_t chunk_rows = inner_rows * (1 + random() % 9);
    const std::uint64_t rows = random() % (4 * chunk_rows);
    const ArrayEntry entry = Sharded(codec, rows, chunk_rows, inner_rows);
    TempDir dir;
    const auto written = WriteByFormula(fs, dir.path(), entry);
    ASSERT_OK(written);
    const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
    ASSERT_OK(array);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t first = random() % (rows + 1);
      const std::uint64_t count = i == 0 ? rows - first : random() % (rows - first + 1);
      std::vector<std::byte> out(count * 12);
      ASSERT_OK((*array)->ReadRows(first, count, out));
      EXPECT_EQ(out, RowsByFormula(first, count, 12)) << first << " " << count;
    }
  }
}

TEST(ShardFileTest, BytesAreThoseOfTheFormat) {
  TempDir dir;
  // 10 rows in shards of 8 rows with inner chunks of 2 rows. The second shard has one inner chunk.
  const auto written = WriteByFormula(fs, dir.path(), Sharded(CodecKind::kRaw, 10, 8, 2));
  ASSERT_OK(written);
  const auto bytes = BytesOfShardFile(dir / "arrays/x/c.1.0");
  ASSERT_EQ(bytes.size(), 28u + 4 * 4 + 4 * 16 + 4);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 24), RowsByFormula(8, 2, 12));
  const std::uint32_t sum = Crc32c(std::span(bytes).first(24));
  EXPECT_EQ(LoadLittle<std::uint32_t>(bytes.data() + 24), sum);
  EXPECT_EQ(LoadLittle<std::uint32_t>(bytes.data() + 28), sum);
  for (const std::size_t at : {32, 36, 40})
    EXPECT_EQ(LoadLittle<std::uint32_t>(bytes.data() + at), 0u);
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + 44), 0u);
  EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + 52), 28u);
  for (std::size_t at = 60; at < 108; at += 8)
    EXPECT_EQ(LoadLittle<std::uint64_t>(bytes.data() + at), ~std::uint64_t{0});
  EXPECT_EQ(LoadLittle<std::uint32_t>(bytes.data() + 108),
            Crc32c(std::span(bytes).subspan(44, 64)));
}

TEST(ShardFileTest, EveryFlippedBitIsNoticedByWhoReadsIt) {
  std::mt19937_64 random(testing::TestSeed());
  for (const CodecKind codec : kCodecs) {
    TempDir dir;
    const auto written = WriteByFormula(fs, dir.path(), Sharded(codec, 32, 32, 8));
    ASSERT_OK(written);
    const Path path = dir / "arrays/x/c.0.0";
    const auto sound = BytesOfShardFile(path);
    for (int i = 0; i < 25; ++i) {
      auto bytes = sound;
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
      Write(path, bytes);
      const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
      ASSERT_OK(array);
      std::vector<std::byte> rows(32 * 12);
      EXPECT_STATUS((*array)->ReadChunk(0, rows), kCorruption);
      // Reading a part returns an error or the bytes that were written. At least one part must
      // fail.
      int refused = 0;
      for (std::uint64_t inner = 0; inner < 4; ++inner) {
        std::vector<std::byte> part(8 * 12);
        const Status read = (*array)->ReadRows(inner * 8, 8, part);
        refused += read.ok() ? 0 : 1;
        const bool told = read.code() == StatusCode::kCorruption;
        EXPECT_TRUE(told || part == RowsByFormula(inner * 8, 8, 12));
      }
      EXPECT_GE(refused, 1);
    }
  }
}

TEST(ShardFileTest, DamagedInnerChunkIsNamedAndTheOthersAreRead) {
  for (const CodecKind codec : kCodecs) {
    TempDir dir;
    const auto written = WriteByFormula(fs, dir.path(), Sharded(codec, 32, 32, 8));
    ASSERT_OK(written);
    const Path path = dir / "arrays/x/c.0.0";
    auto bytes = BytesOfShardFile(path);
    const ArrayEntry& entry = written->arrays[0];
    const auto tail = std::span(bytes).subspan(bytes.size() - ShardTailBytes(entry));
    const auto table = DecodeShardTail(entry, 32, tail, written->files[0]);
    ASSERT_OK(table);
    const InnerRange third = table->ranges[2];
    bytes[third.offset_bytes + 5] ^= std::byte{1};
    Write(path, bytes);
    const std::string name = fmt::format("c.0.0: inner chunk 2, bytes [{}, {})", third.offset_bytes,
                                         third.offset_bytes + third.size_bytes);
    const auto array = ChunkArray::Open(fs, dir.path(), entry, written->files);
    ASSERT_OK(array);
    std::vector<std::byte> rows(12);
    for (const std::uint64_t row : {0, 15, 24, 31}) EXPECT_OK((*array)->ReadRows(row, 1, rows));
    const Status one = (*array)->ReadRows(16, 1, rows);
    EXPECT_EQ(one.code(), StatusCode::kCorruption);
    EXPECT_THAT(one.message(), HasSubstr(name.substr(0, 5)));
    EXPECT_THAT(one.message(), HasSubstr(name.substr(7)));
    rows.resize(32 * 12);
    const auto all = (*array)->ReadChunk(0, rows);
    ASSERT_FALSE(all.has_value());
    EXPECT_THAT(all.error().message(), HasSubstr(name.substr(7)));
  }
}

TEST(ShardFileTest, ShardInAnotherShardsPlaceIsNoticedByEveryRead) {
  std::mt19937_64 random(testing::TestSeed());
  for (const CodecKind codec : kCodecs) {
    ArrayEntry entry = Sharded(codec, 512, 256, 64);
    TempDir dir;
    const auto written = WriteNoise(dir.path(), entry, random);
    ASSERT_OK(written);
    const auto other = BytesOfShardFile(dir / "arrays/x/c.1.0");
    ASSERT_EQ(other.size(), BytesOfShardFile(dir / "arrays/x/c.0.0").size());
    // Apart from their tables, both files have the checksum that all shards of these lengths share.
    Write(dir / "arrays/x/c.0.0", other);
    const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
    ASSERT_OK(array);
    std::vector<std::byte> rows(12);
    EXPECT_EQ((*array)->ReadRows(3, 1, rows).code(), StatusCode::kCorruption);
    EXPECT_OK((*array)->ReadRows(256 + 3, 1, rows));
    rows.resize(256 * 12);
    EXPECT_STATUS((*array)->ReadChunk(0, rows), kCorruption);
    // Puts an inner chunk of another shard, valid on its own, into a shard whose table matches the
    // manifest.
    auto mixed = BytesOfShardFile(dir / "arrays/x/c.1.0");
    std::copy_n(mixed.begin(), 64 * 12, mixed.begin() + (64 * 12 + 4));
    Write(dir / "arrays/x/c.1.0", mixed);
    rows.resize(12);
    EXPECT_EQ((*array)->ReadRows(256 + 64, 1, rows).code(), StatusCode::kCorruption);
  }
}

TEST(ShardFileTest, TruncatedAndLongerFilesAreNoticed) {
  TempDir dir;
  const auto written = WriteByFormula(fs, dir.path(), Sharded(CodecKind::kZstd, 32, 32, 8));
  ASSERT_OK(written);
  const Path path = dir / "arrays/x/c.0.0";
  const auto sound = BytesOfShardFile(path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, sound.size() - 1}) {
    Write(path, {sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size)});
    const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
    ASSERT_OK(array);
    std::vector<std::byte> rows(12);
    EXPECT_EQ((*array)->ReadRows(0, 1, rows).code(), StatusCode::kCorruption);
  }
  // The size in the manifest is too small for a shard.
  auto files = written->files;
  files[0].size_bytes = ShardTailBytes(written->arrays[0]) - 1;
  EXPECT_STATUS(ChunkArray::Open(fs, dir.path(), written->arrays[0], files), kCorruption);
  files[0].size_bytes = MaxShardBytes(written->arrays[0]) + 1;
  EXPECT_STATUS(ChunkArray::Open(fs, dir.path(), written->arrays[0], files), kCorruption);
}

// Zarr allows this index, but our writer does not produce it.
TEST(ShardFileTest, PlacesOfAnotherWriterAreRefused) {
  const ArrayEntry entry = [] {
    ArrayEntry made = Sharded(CodecKind::kRaw, 20, 32, 8);
    made.codec.element_bytes = 4;
    return made;
  }();
  const auto sound = EncodeShard(entry, RowsByFormula(0, 20, 12));
  ASSERT_OK(sound);
  const auto refused = [&](const std::vector<InnerRange>& ranges) {
    auto bytes = *sound;
    const auto index = EncodeShardIndex({.inner_chunks = 4}, ranges);
    std::copy(index.begin(), index.end(), bytes.end() - static_cast<std::ptrdiff_t>(index.size()));
    const FileEntry file{"x", bytes.size(), Xxh3(bytes), Crc32c(bytes)};
    const auto tail = std::span(bytes).subspan(bytes.size() - ShardTailBytes(entry));
    return !DecodeShardTail(entry, 20, tail, file).has_value();
  };
  const InnerRange none;
  EXPECT_FALSE(refused({{0, 100}, {100, 100}, {200, 100}, none}));
  EXPECT_TRUE(refused({{100, 100}, {0, 100}, {200, 100}, none}));
  EXPECT_TRUE(refused({{0, 100}, {100, 100}, none, none}));
  EXPECT_TRUE(refused({{0, 100}, {100, 100}, {200, 90}, {290, 10}}));
  EXPECT_TRUE(refused({{0, 100}, {100, 90}, {190, 110}, none}));
  EXPECT_TRUE(refused({{0, 100}, {100, 100}, {200, 96}, none}));
}

TEST(ShardFileTest, KilledJobGoesOnWithAdoptedShards) {
  TempDir dir;
  TempDir whole;
  const ArrayEntry entry = Sharded(CodecKind::kBloscLz4, 300, 128, 16);
  const auto expected = WriteByFormula(fs, whole.path(), entry);
  ASSERT_OK(expected);
  FileEntry first;
  {
    auto killed = ChunkArrayWriter::Create(fs, dir.path(), entry);
    ASSERT_OK(killed);
    auto file = (*killed)->WriteChunk(0, RowsByFormula(0, 128, 12));
    ASSERT_OK(file);
    first = *file;
    std::ofstream(dir / "arrays/x/c.1.0") << "torn";
  }
  auto writer = ChunkArrayWriter::Create(fs, dir.path(), entry);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->AdoptChunk(0, first));
  ASSERT_OK((*writer)->WriteChunk(1, RowsByFormula(128, 128, 12)));
  ASSERT_OK((*writer)->WriteChunk(2, RowsByFormula(256, 44, 12)));
  const auto files = (*writer)->Finish();
  ASSERT_OK(files);
  EXPECT_EQ(*files, expected->files);
}

TEST(ShardFileTest, RulesForShards) {
  ArrayEntry entry = Sharded(CodecKind::kRaw, 100, 64, 16);
  EXPECT_OK(CheckArrayEntry(entry));
  entry.inner_rows = 24;
  EXPECT_EQ(CheckArrayEntry(entry).code(), StatusCode::kInvalidArgument);
  entry.inner_rows = 128;
  EXPECT_EQ(CheckArrayEntry(entry).code(), StatusCode::kInvalidArgument);
  entry.inner_rows = 16;
  entry.layout = ArrayLayout::kRow;
  EXPECT_THAT(CheckArrayEntry(entry).message(),
              HasSubstr("only arrays of layout chunk can have shards"));
  entry = Sharded(CodecKind::kRaw, 100, kMaxInnerChunksOfShard, 1);
  EXPECT_OK(CheckArrayEntry(entry));
  entry.chunk_rows += 1;
  EXPECT_EQ(CheckArrayEntry(entry).code(), StatusCode::kInvalidArgument);
}

TEST(ShardFileTest, ChosenRowsAreWholeInnerChunks) {
  const auto chosen = [](std::uint64_t rows, std::uint64_t dim, std::uint64_t chunk_rows,
                         std::uint64_t inner_rows) {
    ArrayEntry entry =
        MakeEntry("x", rows, dim, DataType::kFloat32, ArrayLayout::kChunk, CodecKind::kZstd);
    entry.chunk_rows = chunk_rows;
    entry.inner_rows = inner_rows;
    EXPECT_OK(ChooseChunkRows(entry));
    EXPECT_OK(CheckArrayEntry(entry));
    return std::pair(entry.chunk_rows, entry.inner_rows);
  };
  EXPECT_EQ(chosen(1 << 20, 128, 0, 0), std::pair(32768ul, 0ul));
  EXPECT_EQ(chosen(1 << 20, 128, 0, kChosenInnerRows), std::pair(32768ul, 128ul));  // 64 KiB
  EXPECT_EQ(chosen(1 << 20, 768, 0, kChosenInnerRows), std::pair(21760ul, 16ul));   // 48 KiB
  EXPECT_EQ(chosen(1100, 1, 0, kChosenInnerRows), std::pair(2048ul, 1024ul));
  EXPECT_EQ(chosen(1100, 1 << 16, 0, kChosenInnerRows), std::pair(256ul, 1ul));
  EXPECT_EQ(chosen(1100, 128, 100, kChosenInnerRows), std::pair(100ul, 4ul));
  EXPECT_EQ(chosen(1100, 128, 0, 100), std::pair(1200ul, 100ul));
  EXPECT_EQ(chosen(1 << 20, 768, 0, 1000), std::pair(21000ul, 1000ul));
}

TEST(ShardFileTest, MetadataReturns) {
  for (const CodecKind codec : kCodecs) {
    ArrayEntry entry = Sharded(codec, 100, 64, 16);
    if (codec == CodecKind::kRaw) entry.codec.level = 0;
    const auto decoded = DecodeArrayJson(EncodeArrayJson(entry), "x");
    ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, entry);
    EXPECT_EQ(decoded->inner_rows, 16u);
    std::string text = EncodeArrayJson(entry);
    text.replace(text.find("\"end\""), 5, "\"start\"");
    EXPECT_STATUS(DecodeArrayJson(text, "x"), kCorruption);
  }
}

// A manifest without shards keeps the version that older builds can read.
TEST(ShardFileTest, ManifestHasTheVersionOfShardsOnlyWithThem) {
  const auto version_of = [](const Manifest& manifest) {
    const auto bytes = EncodeManifest(manifest, testing::FixedStoreId());
    const auto decoded = DecodeManifest(bytes, testing::FixedStoreId());
    EXPECT_OK(decoded);
    EXPECT_TRUE(decoded && decoded->arrays == manifest.arrays);
    return LoadLittle<std::uint32_t>(bytes.data() + 8);
  };
  Manifest manifest;
  manifest.generation = manifest.version = 1;
  manifest.info = testing::SmallInfo();
  const auto sharded = [](std::uint64_t inner_rows) {
    ArrayEntry entry = Sharded(CodecKind::kZstd, 100, 64, inner_rows);
    entry.form = ArrayForm::kZeroFill;
    return entry;
  };
  manifest.arrays = {sharded(0)};
  EXPECT_EQ(version_of(manifest), 1u);
  manifest.arrays[0].form = ArrayForm::kMarkedFill;
  EXPECT_EQ(version_of(manifest), 3u);
  manifest.arrays = {sharded(16)};
  EXPECT_EQ(version_of(manifest), 2u);
  manifest.keep.generations = 0;
  EXPECT_EQ(version_of(manifest), 3u);
  manifest.keep = {};
  manifest.arrays[0].name = "y";
  manifest.arrays.insert(manifest.arrays.begin(), sharded(0));
  EXPECT_EQ(version_of(manifest), 2u);
  // No writer has ever written version 2 without shards.
  auto bytes = EncodeManifest(manifest, testing::FixedStoreId());
  const std::size_t seal = bytes.size() - 4;
  StoreLittle(bytes.data() + seal - 16, std::uint64_t{0});  // inner_rows of the last array
  StoreLittle(bytes.data() + seal, Crc32c(std::span(bytes).first(seal)));
  EXPECT_STATUS(DecodeManifest(bytes, testing::FixedStoreId()), kCorruption);
}

TEST(ShardFileTest, VerifyNamesEachDamagedInnerChunk) {
  TempDir dir;
  {
    const auto store = Store::Create(fs, dir / "s", testing::FixedStoreId());
    ASSERT_OK(store);
    const auto writer = GenerationWriter::Create(**store);
    ASSERT_OK(writer);
    ArrayEntry entry = Sharded(CodecKind::kRaw, 100, 64, 16);
    const auto written = WriteByFormula(fs, (*writer)->root(), entry);
    ASSERT_OK(written);
    ASSERT_OK((*writer)->AddArray(written->arrays, written->files));
    ASSERT_OK((*writer)->Commit(testing::SmallInfo(100)));
  }
  const auto verify = [&] { return VerifyFiles(fs, dir / "s", JobControl()); };
  auto report = verify();
  ASSERT_OK(report);
  EXPECT_TRUE(report->ok());
  const std::string name = "generations/000001/arrays/x/c.0.0";
  auto bytes = BytesOfShardFile(dir / "s" / name);
  bytes[0] ^= std::byte{1};
  bytes[2 * 196 + 3] ^= std::byte{1};
  Write(dir / "s" / name, bytes);
  report = verify();
  ASSERT_OK(report);
  ASSERT_EQ(report->damaged.size(), 2u);
  EXPECT_EQ(report->damaged[0].file, name);
  EXPECT_EQ(report->damaged[0].offset_bytes, 0u);
  EXPECT_THAT(report->damaged[0].what, HasSubstr("inner chunk 0, bytes [0, 196)"));
  EXPECT_EQ(report->damaged[1].offset_bytes, 392u);
  EXPECT_THAT(report->damaged[1].what, HasSubstr("inner chunk 2, bytes [392, 588)"));
  bytes[bytes.size() - 10] ^= std::byte{1};
  Write(dir / "s" / name, bytes);
  report = verify();
  ASSERT_OK(report);
  ASSERT_EQ(report->damaged.size(), 1u);
  EXPECT_THAT(report->damaged[0].what, HasSubstr("shard index, bytes ["));
}

}  // namespace
}  // namespace rhizome
