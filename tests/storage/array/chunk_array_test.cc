#include "rhizome/chunk_array.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "storage/array/chunk_writer.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "testing/fake_file_system.h"

namespace rhizome {
namespace {

using testing::MakeEntry;
using testing::RowsByFormula;
using testing::TempDir;
using testing::WriteByFormula;

void FlipByte(const Path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST(ChunkArrayTest, DefaultChunkRowsFollowsTheRule) {
  EXPECT_EQ(*DefaultChunkRows(0, 4), 128u);
  EXPECT_EQ(*DefaultChunkRows(1, 4), 128u);
  EXPECT_EQ(*DefaultChunkRows(129, 4), 256u);
  EXPECT_EQ(*DefaultChunkRows(1u << 30, 4), 32768u);
  EXPECT_EQ(*DefaultChunkRows(1u << 30, 3072), 21760u);  // 170 * 128; 64 MiB / 3072 = 21845.3
  EXPECT_EQ(*DefaultChunkRows(~std::uint64_t{0}, kMaxChunkBytes / 128), 128u);
  EXPECT_STATUS(DefaultChunkRows(1, 0), kInvalidArgument);
  EXPECT_STATUS(DefaultChunkRows(1, kMaxChunkBytes / 128 + 1), kInvalidArgument);
}

TEST(ChunkArrayTest, RowCrcDependsOnArrayRowAndBytes) {
  const auto row = RowsByFormula(0, 1, 12);
  const auto other = RowsByFormula(1, 1, 12);
  const std::uint32_t crc = RowCrc(1, 2, row);
  EXPECT_NE(crc, RowCrc(1, 3, row));
  EXPECT_NE(crc, RowCrc(2, 2, row));
  EXPECT_NE(crc, RowCrc(1, 2, other));
}

TEST(ChunkArrayTest, RowsReturnInEveryLayoutAndCodec) {
  FileSystem& fs = FileSystem::Posix();
  for (const CodecKind codec :
       {CodecKind::kRaw, CodecKind::kZstd, CodecKind::kBloscLz4, CodecKind::kBloscZstd}) {
    for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
      if (layout == ArrayLayout::kRow && codec != CodecKind::kRaw) continue;
      TempDir dir;
      const auto written = WriteByFormula(
          fs, dir.path(), MakeEntry("x", 1000, 3, DataType::kInt32, layout, codec, 128));
      ASSERT_OK(written);
      ASSERT_EQ(written->arrays.size(), layout == ArrayLayout::kRow ? 2u : 1u);
      const auto array = ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
      ASSERT_OK(array);
      EXPECT_EQ((*array)->RowsInChunk(7), 1000u - 7 * 128);
      for (const auto& [first, count] : {std::pair{0, 1000}, {100, 300}, {999, 1}, {1000, 0}}) {
        std::vector<std::byte> rows(static_cast<std::size_t>(count) * 12);
        ASSERT_OK((*array)->ReadRows(first, count, rows));
        EXPECT_EQ(rows, RowsByFormula(first, count, 12));
      }
      std::vector<std::byte> rows(12);
      EXPECT_STATUS((*array)->ReadRows(1000, 1, rows), kInvalidArgument);
      EXPECT_STATUS((*array)->ReadChunk(8, rows), kInvalidArgument);
      EXPECT_STATUS((*array)->ReadChunk(0, rows), kInvalidArgument);
    }
  }
}

// The last chunk is short, encoded chunks have any length, and memory need not be aligned.
TEST(ChunkArrayTest, ChunksAreTheSameReadDirectly) {
  for (const std::uint32_t unit : {1U, 512U, 4096U}) {
    for (const CodecKind codec : {CodecKind::kRaw, CodecKind::kBloscLz4}) {
      for (const std::uint64_t inner_rows : {0U, 64U}) {
        testing::FakeFileSystem fs;
        fs.SetDirectAlignment(unit);
        ASSERT_OK(fs.CreateDirectory("/root"));
        ArrayEntry entry =
            MakeEntry("x", 1000, 8, DataType::kInt32, ArrayLayout::kChunk, codec, 256);
        entry.inner_rows = inner_rows;
        const auto written = WriteByFormula(fs, "/root", entry);
        ASSERT_OK(written);
        const auto array = ChunkArray::Open(fs, "/root", written->arrays[0], written->files);
        ASSERT_OK(array);
        for (const std::size_t shift : {0U, 4U}) {
          for (std::uint64_t chunk = 0; chunk < 4; ++chunk) {
            const std::uint64_t rows = (*array)->RowsInChunk(chunk);
            const auto memory = AlignedBuffer::Allocate(rows * 32 + shift);
            ASSERT_OK(memory);
            const auto out = memory->bytes().subspan(shift);
            const auto read = (*array)->ReadChunk(chunk, out, {.direct = true});
            ASSERT_OK(read);
            EXPECT_EQ(*read, (*(*array)->ChunkFile(chunk))->size_bytes);
            EXPECT_TRUE(std::ranges::equal(out, RowsByFormula(chunk * 256, rows, 32)));
          }
        }
      }
    }
  }
}

TEST(ChunkArrayTest, DirectReadsThatAreShortGoOnAndThoseThatEndAreTold) {
  testing::FakeFileSystem fs;
  fs.SetDirectAlignment(512);
  ASSERT_OK(fs.CreateDirectory("/root"));
  const auto written = WriteByFormula(
      fs, "/root", MakeEntry("x", 128, 9, DataType::kInt32, ArrayLayout::kChunk, CodecKind::kRaw));
  ASSERT_OK(written);
  const auto array = ChunkArray::Open(fs, "/root", written->arrays[0], written->files);
  ASSERT_OK(array);
  std::vector<std::byte> out(std::size_t{128} * 36);
  // ReadChunk first opens the file, then reads.
  fs.FailAt(fs.operation_count() + 1, testing::FakeFileSystem::kShortRead, /*sticky=*/false);
  ASSERT_OK((*array)->ReadChunk(0, out, {.direct = true}));
  EXPECT_EQ(out, RowsByFormula(0, 128, 36));
  fs.FailAt(fs.operation_count() + 1, testing::FakeFileSystem::kEmptyRead, /*sticky=*/true);
  const auto read = (*array)->ReadChunk(0, out, {.direct = true});
  EXPECT_STATUS(read, kCorruption);
  EXPECT_THAT(read.error().message(), ::testing::HasSubstr("truncated"));
}

TEST(ChunkArrayTest, RawChunkFilesHaveFullLengthAndZerosAtTheEnd) {
  FileSystem& fs = FileSystem::Posix();
  TempDir dir;
  ASSERT_OK(WriteByFormula(
      fs, dir.path(),
      MakeEntry("x", 130, 3, DataType::kInt32, ArrayLayout::kRow, CodecKind::kRaw, 128)));
  const auto bytes = ReadWholeFile(fs, dir / "arrays/x/c.1.0", 1 << 20);
  ASSERT_OK(bytes);
  auto expected = RowsByFormula(128, 2, 12);
  expected.resize(128 * 12);
  EXPECT_EQ(*bytes, expected);
}

TEST(ChunkArrayTest, SidecarHoldsTheChecksumOfEveryRow) {
  FileSystem& fs = FileSystem::Posix();
  TempDir dir;
  const auto written =
      WriteByFormula(fs, dir.path(), MakeEntry("x", 300, 5, DataType::kUint8, ArrayLayout::kRow));
  ASSERT_OK(written);
  const auto sidecar = ChunkArray::Open(fs, dir.path(), written->arrays[1], written->files);
  ASSERT_OK(sidecar);
  EXPECT_EQ((*sidecar)->entry().name, "x.crc32c");
  std::vector<std::uint32_t> sums(300);
  ASSERT_OK((*sidecar)->ReadRows(0, 300, std::as_writable_bytes(std::span(sums))));
  for (std::uint64_t row = 0; row < 300; ++row)
    EXPECT_EQ(sums[row], RowCrc(7, row, RowsByFormula(row, 1, 5)));
}

TEST(ChunkArrayTest, EqualInputGivesEqualBytesFromAnyNumberOfThreads) {
  FileSystem& fs = FileSystem::Posix();
  const auto entry =
      MakeEntry("x", 1000, 3, DataType::kInt32, ArrayLayout::kChunk, CodecKind::kBloscZstd, 128);
  TempDir one;
  TempDir two;
  const auto expected = WriteByFormula(fs, one.path(), entry);
  ASSERT_OK(expected);
  auto writer = ChunkArrayWriter::Create(fs, two.path(), entry);
  ASSERT_OK(writer);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t chunk = t; chunk < 8; chunk += 4) {
        const std::uint64_t count = std::min<std::uint64_t>(128, 1000 - chunk * 128);
        EXPECT_OK((*writer)->WriteChunk(chunk, RowsByFormula(chunk * 128, count, 12)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto files = (*writer)->Finish();
  ASSERT_OK(files);
  EXPECT_EQ(*files, expected->files);
}

// Chunks of random bytes do not compress, so they have equal lengths, and each is valid on its own.
TEST(ChunkArrayTest, ChunkInAnotherChunksPlaceIsNoticedInEveryCodec) {
  FileSystem& fs = FileSystem::Posix();
  const std::uint64_t seed = testing::TestSeed();
  SCOPED_TRACE(seed);
  for (const CodecKind codec :
       {CodecKind::kRaw, CodecKind::kZstd, CodecKind::kBloscLz4, CodecKind::kBloscZstd}) {
    TempDir dir;
    const auto entry = MakeEntry("x", 256, 16, DataType::kUint8, ArrayLayout::kChunk, codec, 128);
    auto writer = ChunkArrayWriter::Create(fs, dir.path(), entry);
    ASSERT_OK(writer);
    std::mt19937_64 random(seed);
    for (const std::uint64_t chunk : {0, 1}) {
      std::vector<std::byte> rows(128 * 16);
      for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
      ASSERT_OK((*writer)->WriteChunk(chunk, rows));
    }
    const auto files = (*writer)->Finish();
    ASSERT_OK(files);
    const Path first = dir / "arrays/x/c.0.0";
    const Path second = dir / "arrays/x/c.1.0";
    ASSERT_EQ(std::filesystem::file_size(first), std::filesystem::file_size(second));
    std::filesystem::copy_file(second, first, std::filesystem::copy_options::overwrite_existing);
    const auto array = ChunkArray::Open(fs, dir.path(), (*writer)->arrays()[0], *files);
    ASSERT_OK(array);
    std::vector<std::byte> rows(128 * 16);
    EXPECT_STATUS((*array)->ReadChunk(0, rows), kCorruption);
    EXPECT_OK((*array)->ReadChunk(1, rows));
  }
}

TEST(ChunkArrayTest, KilledJobGoesOnWithAdoptedChunks) {
  FileSystem& fs = FileSystem::Posix();
  TempDir dir;
  const auto entry =
      MakeEntry("x", 300, 3, DataType::kInt32, ArrayLayout::kChunk, CodecKind::kZstd, 128);
  FileEntry first;
  {
    auto killed = ChunkArrayWriter::Create(fs, dir.path(), entry);
    ASSERT_OK(killed);
    auto file = (*killed)->WriteChunk(0, RowsByFormula(0, 128, 12));
    ASSERT_OK(file);
    first = *file;
    std::ofstream(dir / "arrays/x/c.1.0") << "torn";  // what the killed writer left behind
  }
  auto writer = ChunkArrayWriter::Create(fs, dir.path(), entry);
  ASSERT_OK(writer);
  EXPECT_STATUS((*writer)->AdoptChunk(1, first), kInvalidArgument);
  FileEntry longer = first;
  ++longer.size_bytes;
  EXPECT_STATUS((*writer)->AdoptChunk(0, longer), kCorruption);
  ASSERT_OK((*writer)->AdoptChunk(0, first));
  EXPECT_STATUS((*writer)->Finish(), kInvalidArgument);  // chunks 1 and 2 are missing
  ASSERT_OK((*writer)->WriteChunk(1, RowsByFormula(128, 128, 12)));
  ASSERT_OK((*writer)->WriteChunk(2, RowsByFormula(256, 44, 12)));
  const auto files = (*writer)->Finish();
  ASSERT_OK(files);
  TempDir other;
  EXPECT_EQ(*files, WriteByFormula(fs, other.path(), entry)->files);
}

TEST(ChunkArrayTest, BadDescriptionsAreRefused) {
  FileSystem& fs = FileSystem::Posix();
  TempDir dir;
  const auto good = MakeEntry("x", 10, 3, DataType::kInt32, ArrayLayout::kRow);
  const auto refused = [&](auto change) {
    ArrayEntry entry = good;
    change(entry);
    EXPECT_STATUS(ChunkArrayWriter::Create(fs, dir.path(), entry), kInvalidArgument);
  };
  refused([](ArrayEntry& e) { e.name = "../x"; });
  refused([](ArrayEntry& e) { e.name = "x.crc32c"; });
  refused([](ArrayEntry& e) { e.name = std::string(128, 'x'); });  // too long for its sidecar
  refused([](ArrayEntry& e) { e.dim = 0; });
  refused([](ArrayEntry& e) { e.chunk_rows = kMaxChunkBytes; });
  refused([](ArrayEntry& e) { e.codec.kind = CodecKind::kZstd; });
  refused([](ArrayEntry& e) { e.dtype = DataType::kInvalid; });
  auto writer = ChunkArrayWriter::Create(fs, dir.path(), good);
  ASSERT_OK(writer);
  EXPECT_STATUS((*writer)->WriteChunk(1, {}), kInvalidArgument);
  EXPECT_STATUS((*writer)->WriteChunk(0, RowsByFormula(0, 9, 12)), kInvalidArgument);
  EXPECT_STATUS((*writer)->AdoptChunk(0, {}), kInvalidArgument);
}

TEST(ChunkArrayTest, DamageIsNamed) {
  FileSystem& fs = FileSystem::Posix();
  for (const CodecKind codec : {CodecKind::kRaw, CodecKind::kBloscLz4}) {
    TempDir dir;
    const auto written = WriteByFormula(
        fs, dir.path(), MakeEntry("x", 300, 3, DataType::kInt32, ArrayLayout::kChunk, codec, 128));
    ASSERT_OK(written);
    const auto open = [&] {
      return ChunkArray::Open(fs, dir.path(), written->arrays[0], written->files);
    };
    const auto array = open();
    ASSERT_OK(array);
    std::vector<std::byte> rows(128 * 12);
    FlipByte(dir / "arrays/x/c.1.0", 20);
    const auto read = (*array)->ReadChunk(1, rows);
    EXPECT_STATUS(read, kCorruption);
    EXPECT_NE(read.error().message().find("c.1.0"), std::string::npos);
    ASSERT_OK((*array)->ReadChunk(0, rows));
    std::filesystem::resize_file(dir / "arrays/x/c.1.0", 10);
    EXPECT_STATUS((*array)->ReadChunk(1, rows), kCorruption);
    std::filesystem::remove(dir / "arrays/x/c.1.0");
    EXPECT_STATUS((*array)->ReadChunk(1, rows), kCorruption);
    std::filesystem::rename(dir / "arrays/x/c.2.0", dir / "arrays/x/c.1.0");  // swapped
    EXPECT_STATUS((*array)->ReadChunk(1, rows), kCorruption);

    ArrayEntry longer = written->arrays[0];
    longer.rows = std::uint64_t{1} << 50;  // no memory for rows that only the shape claims
    EXPECT_STATUS(ChunkArray::Open(fs, dir.path(), longer, written->files), kCorruption);
    auto missing = written->files;
    missing.erase(missing.begin());
    EXPECT_STATUS(ChunkArray::Open(fs, dir.path(), written->arrays[0], missing), kCorruption);
    FlipByte(dir / "arrays/x/zarr.json", 3);
    EXPECT_STATUS(open(), kCorruption);
    std::filesystem::remove(dir / "arrays/x/zarr.json");
    EXPECT_STATUS(open(), kCorruption);
  }
}

}  // namespace
}  // namespace rhizome
