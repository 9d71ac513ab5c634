#include "storage/array/row_reader.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <fstream>
#include <random>

#include "storage/array/chunk_writer.h"
#include "storage/array_fixture.h"
#include "storage/io/io_queue.h"

namespace rhizome {
namespace {

using testing::MakeEntry;
using testing::RowsByFormula;
using testing::TempDir;
using testing::WriteByFormula;

struct ArraysOfRowReader {
  std::unique_ptr<ChunkArray> rows;
  std::unique_ptr<ChunkArray> sums;
};

ArraysOfRowReader MakeArrays(const Path& root, std::uint64_t rows, std::uint64_t row_bytes,
                             std::uint64_t chunk_rows, const char* name = "x") {
  FileSystem& fs = FileSystem::Posix();
  const auto written = WriteByFormula(fs, root,
                                      MakeEntry(name, rows, row_bytes, DataType::kUint8,
                                                ArrayLayout::kRow, CodecKind::kRaw, chunk_rows));
  EXPECT_OK(written);
  return {*ChunkArray::Open(fs, root, written->arrays[0], written->files),
          *ChunkArray::Open(fs, root, written->arrays[1], written->files)};
}

std::vector<RowTarget> TargetsFor(const std::vector<std::int64_t>& rows, std::uint64_t row_bytes,
                                  std::vector<std::byte>& memory) {
  memory.assign(rows.size() * row_bytes, std::byte{0xEE});
  std::vector<RowTarget> targets;
  for (std::size_t i = 0; i < rows.size(); ++i)
    targets.push_back({rows[i], memory.data() + i * row_bytes});
  return targets;
}

struct CaseOfRowReader {
  IoMaker maker;
  bool direct;
  std::uint64_t row_bytes;
};

IoQueueOptions Io(IoMaker maker) {
  IoQueueOptions io;
  io.maker = maker;
  io.depth = 8;
  return io;
}

class RowReaderTest : public ::testing::TestWithParam<CaseOfRowReader> {};

TEST_P(RowReaderTest, GathersEqualTheFormula) {
  const auto [maker, direct, row_bytes] = GetParam();
  std::mt19937_64 random(testing::TestSeed());
  TempDir dir;
  const std::uint64_t row_count = 1000;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), row_count, row_bytes, 128);
  for (const std::uint64_t gap : {0, 4096}) {
    RowReaderOptions options{.io = Io(maker),
                             .direct = direct,
                             .gap_bytes = gap,
                             .max_read_bytes = 8192,
                             .staging_bytes = 64 << 10};
    const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, options);
    if (!reader && reader.error().code() == StatusCode::kUnsupported)
      GTEST_SKIP() << reader.error().message();
    ASSERT_OK(reader);
    EXPECT_EQ((*reader)->row_bytes(), row_bytes);
    EXPECT_EQ((*reader)->row_count(), row_count);
    for (const std::size_t count : {0, 1, 7, 300, 3000}) {
      std::vector<std::int64_t> rows(count);
      for (auto& row : rows) row = static_cast<std::int64_t>(random() % row_count);
      if (count > 1) rows[0] = rows[1] = static_cast<std::int64_t>(row_count) - 1;
      std::vector<std::byte> memory;
      auto targets = TargetsFor(rows, row_bytes, memory);
      ASSERT_OK((*reader)->Read(targets));
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = RowsByFormula(static_cast<std::uint64_t>(rows[i]), 1, row_bytes);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.data() + i * row_bytes))
            << "row " << rows[i];
      }
    }
    EXPECT_EQ((*reader)->stats().rows, 3308u);
    EXPECT_GT((*reader)->stats().reads, 0u);
  }
}

// A staging buffer of this size could not be allocated.
TEST(MappedRowReaderTest, TakesNoMemoryForReads) {
  TempDir dir;
  constexpr std::uint64_t kRowBytes = 24;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 100, kRowBytes, 16);
  const auto reader = RowReader::Open(
      *arrays.rows, *arrays.sums,
      {.io = Io(IoMaker::kMapped), .direct = false, .staging_bytes = std::size_t{1} << 62});
  ASSERT_OK(reader);
  const auto another = (*reader)->Another();
  ASSERT_OK(another);
  std::vector<std::byte> memory;
  auto targets = TargetsFor({99, 0, 17}, kRowBytes, memory);
  ASSERT_OK((*another)->Read(targets));
  const auto expected = RowsByFormula(17, 1, kRowBytes);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin() + 2 * kRowBytes));
}

INSTANTIATE_TEST_SUITE_P(Makers, RowReaderTest,
                         ::testing::Values(CaseOfRowReader{IoMaker::kPread, false, 12},
                                           CaseOfRowReader{IoMaker::kPread, true, 12},
                                           CaseOfRowReader{IoMaker::kPread, true, 2932},
                                           CaseOfRowReader{IoMaker::kUring, false, 2932},
                                           CaseOfRowReader{IoMaker::kUring, true, 512},
                                           CaseOfRowReader{IoMaker::kUring, true, 12},
                                           CaseOfRowReader{IoMaker::kUring, true, 2932},
                                           CaseOfRowReader{IoMaker::kUring, true, 9001},
                                           CaseOfRowReader{IoMaker::kMapped, false, 12},
                                           CaseOfRowReader{IoMaker::kMapped, false, 9001}));

TEST(RowReaderTest, DuplicatesAndNeighboursAreReadOnce) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 64, 512);
  const auto reader =
      RowReader::Open(*arrays.rows, *arrays.sums,
                      {.io = {}, .direct = false, .gap_bytes = 64, .max_read_bytes = 4096});
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  // Rows 5, 6 and 8 are read together, with row 7 as the gap; row 5 is requested three times. Row
  // 700 is in another chunk.
  auto targets = TargetsFor({5, 700, 6, 5, 8, 5}, 64, memory);
  ASSERT_OK((*reader)->Read(targets));
  EXPECT_EQ((*reader)->stats().reads, 2u);
  EXPECT_EQ((*reader)->stats().read_bytes, (4u + 1u) * 64);
  EXPECT_EQ((*reader)->stats().rows, 6u);
}

TEST(RowReaderTest, MappedRowsAreCopiedOnceEach) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 64, 512);
  const auto reader =
      RowReader::Open(*arrays.rows, *arrays.sums, {.io = Io(IoMaker::kMapped), .direct = false});
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  auto targets = TargetsFor({5, 700, 6, 5, 8, 5}, 64, memory);
  ASSERT_OK((*reader)->Read(targets));
  EXPECT_EQ((*reader)->stats().reads, 4u);
  EXPECT_EQ((*reader)->stats().read_bytes, 4u * 64);
  EXPECT_EQ((*reader)->stats().rows, 6u);
  EXPECT_EQ((*reader)->stats().maker, IoMaker::kMapped);
}

TEST(RowReaderTest, AnotherReaderReadsTheSameRows) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 500, 24, 64);
  std::unique_ptr<RowReader> another;
  {
    const auto first = RowReader::Open(*arrays.rows, *arrays.sums, {.io = Io(IoMaker::kPread)});
    ASSERT_OK(first);
    auto opened = (*first)->Another();
    ASSERT_OK(opened);
    another = *std::move(opened);  // must remain usable without the first
  }
  std::vector<std::byte> memory;
  auto targets = TargetsFor({499, 0, 63, 64}, 24, memory);
  ASSERT_OK(another->Read(targets));
  const auto expected = RowsByFormula(499, 1, 24);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin()));
  EXPECT_EQ(another->stats().rows, 4u);
}

void ExpectThatAFlippedByteIsNamed(const RowReaderOptions& options) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 12, 128);
  const Path path = dir / "arrays/x/c.3.0";
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(12 * 10 + 5);  // row 3 * 128 + 10
    file.put('\x55');
  }
  const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, options);
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  auto good = TargetsFor({393, 395, 0}, 12, memory);
  ASSERT_OK((*reader)->Read(good));
  std::vector<std::byte> other;
  auto bad = TargetsFor({393, 394, 1, 2, 900}, 12, other);
  const Status status = (*reader)->Read(bad);
  EXPECT_STATUS(status, kCorruption);
  EXPECT_NE(status.message().find("array 'x', row 394"), std::string::npos) << status.message();
  ASSERT_OK((*reader)->Read(good));  // an error leaves the reader usable
}

TEST(RowReaderTest, FlippedByteNamesArrayAndRow) { ExpectThatAFlippedByteIsNamed({}); }

TEST(RowReaderTest, FlippedByteOfAMappedFileNamesArrayAndRow) {
  ExpectThatAFlippedByteIsNamed({.io = Io(IoMaker::kMapped), .direct = false});
}

TEST(RowReaderTest, FailedReadsAreErrorsAndLeaveTheReaderUsable) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 12, 128);
  bool fail = true;
  RowReaderOptions options;
  options.io.maker = IoMaker::kPread;
  options.io.pread_threads = 1;
  options.io.fault_hook = [&](const ReadRequest&, std::int64_t outcome) {
    return fail ? std::int64_t{-EIO} : outcome;
  };
  const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, options);
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  auto targets = TargetsFor({1, 200, 400, 600, 999}, 12, memory);
  EXPECT_STATUS((*reader)->Read(targets), kIoError);
  fail = false;
  EXPECT_OK((*reader)->Read(targets));
}

RowReaderOptions SmallStaging() {
  RowReaderOptions options;
  options.staging_bytes = 100;
  return options;
}

TEST(RowReaderTest, VersionsAreNamedAsUsersWriteThem) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 10, 16, 8, "emb.v2");
  const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, {.io = Io(IoMaker::kPread)});
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  std::vector<RowTarget> targets = TargetsFor({10}, 16, memory);
  const Status none_such = (*reader)->Read(targets);
  EXPECT_STATUS(none_such, kInvalidArgument);
  EXPECT_THAT(none_such.message(), ::testing::HasSubstr("array 'emb@2'"));
  const Path file = dir.path() / ChunkPath("emb.v2", 0, arrays.rows->entry().form);
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out).put('\xEE');
  targets = TargetsFor({0}, 16, memory);
  const Status damaged = (*reader)->Read(targets);
  EXPECT_STATUS(damaged, kCorruption);
  EXPECT_THAT(damaged.message(), ::testing::HasSubstr("array 'emb@2', row 0"));
}

TEST(RowReaderTest, BadArgumentsAreRefused) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 12, 128);
  EXPECT_STATUS(RowReader::Open(*arrays.rows, *arrays.sums, SmallStaging()), kInvalidArgument);
  EXPECT_STATUS(RowReader::Open(*arrays.rows, *arrays.rows, {}), kCorruption);
  const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, {});
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  auto targets = TargetsFor({0, 1000}, 12, memory);
  EXPECT_STATUS((*reader)->Read(targets), kInvalidArgument);
  targets = TargetsFor({-1}, 12, memory);
  EXPECT_STATUS((*reader)->Read(targets), kInvalidArgument);
}

void ExpectErrorsOfTruncatedAndMissingFiles(const RowReaderOptions& options) {
  TempDir dir;
  const ArraysOfRowReader arrays = MakeArrays(dir.path(), 1000, 12, 128);
  std::filesystem::resize_file(dir / "arrays/x/c.2.0", 100);
  std::filesystem::remove(dir / "arrays/x/c.3.0");
  const auto reader = RowReader::Open(*arrays.rows, *arrays.sums, options);
  ASSERT_OK(reader);
  std::vector<std::byte> memory;
  auto targets = TargetsFor({0, 300}, 12, memory);
  EXPECT_STATUS((*reader)->Read(targets), kCorruption);
  targets = TargetsFor({0, 400}, 12, memory);
  EXPECT_STATUS((*reader)->Read(targets), kCorruption);
}

TEST(RowReaderTest, TruncatedAndMissingFilesAreErrors) {
  ExpectErrorsOfTruncatedAndMissingFiles({});
  ExpectErrorsOfTruncatedAndMissingFiles({.io = Io(IoMaker::kMapped), .direct = false});
}

}  // namespace
}  // namespace rhizome
