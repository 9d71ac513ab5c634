#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <vector>

#include "rhizome/chunk_array.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_files.h"
#include "storage/array/array_rules.h"
#include "storage/array/manifest_format.h"
#include "storage/array/row_reader.h"
#include "storage/array/row_sums.h"
#include "storage/array/zarr_format.h"
#include "storage/array_fixture.h"
#include "storage/io/files.h"

// Tests of arrays that are bound to a vertex type, as storage/ sees them: which chunks have files,
// what readers return for the others, and the rules of entries and manifests.

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using testing::FixedStoreId;
using ::testing::HasSubstr;
using testing::MakeEntry;
using testing::RowsByFormula;
using testing::SmallInfo;
using testing::TempDir;
using testing::WrittenArray;

constexpr std::uint64_t kRows = 1000;
constexpr std::uint64_t kChunkRows = 128;
const std::vector<std::uint64_t> kStored = {1, 2, 6};  // of 8 chunks; the last one is left out

ArrayEntry BoundEntry(ArrayLayout layout, CodecKind codec = CodecKind::kRaw,
                      std::uint64_t inner_rows = 0) {
  ArrayEntry entry = MakeEntry("feat", kRows, 3, DataType::kFloat32, layout, codec, kChunkRows);
  entry.inner_rows = inner_rows;
  entry.attributes = {{std::string(kVertexTypeAttribute), "paper"}};
  return entry;
}

Result<WrittenArray> WriteBound(const Path& root, const ArrayEntry& wanted) {
  RHIZOME_ASSIGN_OR_RETURN(auto writer,
                           ChunkArrayWriter::Create(FileSystem::Posix(), root, wanted));
  const ArrayEntry& entry = writer->entry();
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    if (!std::ranges::binary_search(kStored, chunk)) {
      RHIZOME_RETURN_IF_ERROR(writer->LeaveOut(chunk));
      continue;
    }
    const std::uint64_t first = chunk * kChunkRows;
    const std::uint64_t count = std::min(kChunkRows, kRows - first);
    RHIZOME_RETURN_IF_ERROR(
        writer->WriteChunk(chunk, RowsByFormula(first, count, entry.row_bytes())));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto files, writer->Finish());
  return WrittenArray{writer->arrays(), std::move(files)};
}

/// Returns the rows that readers must see: rows of chunks without a file are the fill value.
std::vector<std::byte> Expected(const ArrayEntry& entry) {
  auto rows = RowsByFormula(0, kRows, entry.row_bytes());
  for (std::uint64_t chunk = 0; chunk * kChunkRows < kRows; ++chunk) {
    if (std::ranges::binary_search(kStored, chunk)) continue;
    const std::uint64_t first = chunk * kChunkRows;
    const std::uint64_t count = std::min(kChunkRows, kRows - first);
    FillOtherRows(entry,
                  std::span(rows).subspan(first * entry.row_bytes(), count * entry.row_bytes()));
  }
  return rows;
}

class BoundArrayTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<ChunkArray>> Open(const WrittenArray& written, std::size_t array = 0) {
    return ChunkArray::Open(FileSystem::Posix(), dir_.path(), written.arrays[array], written.files);
  }
  TempDir dir_;
};

TEST_F(BoundArrayTest, ReadersFillRowsOfChunksWithoutFiles) {
  const std::vector<ArrayEntry> entries = {BoundEntry(ArrayLayout::kRow),
                                           BoundEntry(ArrayLayout::kChunk, CodecKind::kZstd),
                                           BoundEntry(ArrayLayout::kChunk, CodecKind::kZstd, 32)};
  for (const ArrayEntry& entry : entries) {
    const TempDir dir;
    const auto written = WriteBound(dir.path(), entry);
    ASSERT_OK(written);
    const auto array =
        ChunkArray::Open(FileSystem::Posix(), dir.path(), written->arrays[0], written->files);
    ASSERT_OK(array);
    const auto expected = Expected((*array)->entry());
    std::vector<std::byte> rows(expected.size());
    ASSERT_OK((*array)->ReadRows(0, kRows, rows));
    EXPECT_EQ(rows, expected);
    // A few rows across the ends of chunks with and without files.
    const std::uint64_t row_bytes = (*array)->entry().row_bytes();
    rows.resize(300 * row_bytes);
    ASSERT_OK((*array)->ReadRows(100, 300, rows));
    EXPECT_TRUE(
        std::ranges::equal(rows, std::span(expected).subspan(100 * row_bytes, 300 * row_bytes)));
    for (std::uint64_t chunk = 0; chunk < 8; ++chunk) {
      const bool stored = std::ranges::binary_search(kStored, chunk);
      EXPECT_EQ((*array)->HasChunk(chunk), stored) << chunk;
      EXPECT_EQ((*array)->ChunkFile(chunk).has_value(), stored) << chunk;
    }
    EXPECT_FALSE((*array)->HasChunk(8));
    EXPECT_EQ(ListedChunks(written->arrays[0], written->files), kStored);
  }
}

TEST_F(BoundArrayTest, TheSidecarLeavesOutTheSameChunks) {
  const auto written = WriteBound(dir_.path(), BoundEntry(ArrayLayout::kRow));
  ASSERT_OK(written);
  ASSERT_EQ(written->arrays.size(), 2);
  const ArrayEntry& sidecar = written->arrays[1];
  EXPECT_EQ(sidecar.chunk_rows, kChunkRows);
  EXPECT_EQ(BoundType(sidecar), "paper");
  EXPECT_EQ(ListedChunks(sidecar, written->files), kStored);
  EXPECT_EQ(written->files.size(), 2 * (kStored.size() + 1));
}

TEST_F(BoundArrayTest, RowReaderReadsStoredRowsAndFillsTheOthers) {
  const auto written = WriteBound(dir_.path(), BoundEntry(ArrayLayout::kRow));
  ASSERT_OK(written);
  const auto array = Open(*written);
  ASSERT_OK(array);
  const auto sidecar = Open(*written, 1);
  ASSERT_OK(sidecar);
  const auto expected = Expected((*array)->entry());
  const std::uint64_t row_bytes = (*array)->entry().row_bytes();
  for (const IoMaker maker : {IoMaker::kPread, IoMaker::kMapped}) {
    RowReaderOptions options;
    options.io.maker = maker;
    const auto reader = RowReader::Open(**array, **sidecar, options);
    ASSERT_OK(reader);
    std::vector<std::byte> rows(kRows * row_bytes);
    std::vector<RowTarget> targets;
    for (std::uint64_t i = 0; i < kRows; ++i) {
      const std::uint64_t row = i * 7 % kRows;
      targets.push_back({static_cast<std::int64_t>(row), rows.data() + row * row_bytes});
    }
    ASSERT_OK((*reader)->Read(targets));
    EXPECT_EQ(rows, expected);
    targets.resize(1);
    targets[0] = {0, rows.data()};  // only a row without a file
    ASSERT_OK((*reader)->Read(targets));
    EXPECT_TRUE(
        std::ranges::equal(std::span(rows).first(row_bytes), std::span(expected).first(row_bytes)));
  }
}

TEST_F(BoundArrayTest, AStoredChunkWithoutChecksumsIsDamage) {
  const auto written = WriteBound(dir_.path(), BoundEntry(ArrayLayout::kRow));
  ASSERT_OK(written);
  WrittenArray cut = *written;
  std::erase_if(cut.files,
                [](const FileEntry& file) { return file.path == "sums/feat.crc32c/c.2.0"; });
  const auto array = Open(cut);
  ASSERT_OK(array);
  const auto sidecar = Open(cut, 1);
  ASSERT_OK(sidecar);
  const auto reader = RowReader::Open(**array, **sidecar, {});
  ASSERT_OK(reader);
  std::vector<std::byte> row((*array)->entry().row_bytes());
  std::vector<RowTarget> targets = {{2 * kChunkRows, row.data()}};
  const Status read = (*reader)->Read(targets);
  EXPECT_EQ(read.code(), StatusCode::kCorruption);
  EXPECT_THAT(read.message(), HasSubstr("row 256 has no checksum"));
}

TEST_F(BoundArrayTest, ASidecarMustBeBoundAsItsArray) {
  const auto written = WriteBound(dir_.path(), BoundEntry(ArrayLayout::kRow));
  ASSERT_OK(written);
  const auto sidecar = Open(*written, 1);
  ASSERT_OK(sidecar);
  ArrayEntry other = written->arrays[0];
  other.attributes[0].second = "author";
  EXPECT_EQ(RowSums::Load(other, **sidecar).error().code(), StatusCode::kCorruption);
  other = written->arrays[0];
  other.chunk_rows *= 2;
  EXPECT_EQ(RowSums::Load(other, **sidecar).error().code(), StatusCode::kCorruption);
}

TEST_F(BoundArrayTest, FinishRequiresEveryChunkToBeWrittenOrLeftOut) {
  auto writer = ChunkArrayWriter::Create(FileSystem::Posix(), dir_.path(),
                                         BoundEntry(ArrayLayout::kChunk, CodecKind::kZstd));
  ASSERT_OK(writer);
  for (std::uint64_t chunk = 1; chunk < 8; ++chunk) ASSERT_OK((*writer)->LeaveOut(chunk));
  const auto unfinished = (*writer)->Finish();
  ASSERT_FALSE(unfinished);
  EXPECT_THAT(unfinished.error().message(), HasSubstr("chunk 0 was not written"));
  ASSERT_OK((*writer)->WriteChunk(0, RowsByFormula(0, kChunkRows, 12)));
  EXPECT_EQ((*writer)->LeaveOut(0).code(), StatusCode::kInvalidArgument);  // it was written
  EXPECT_EQ((*writer)->LeaveOut(8).code(), StatusCode::kInvalidArgument);
  EXPECT_OK((*writer)->Finish());
  const TempDir other;
  writer =
      ChunkArrayWriter::Create(FileSystem::Posix(), other.path(),
                               MakeEntry("all", kRows, 3, DataType::kFloat32, ArrayLayout::kRow));
  ASSERT_OK(writer);
  EXPECT_EQ((*writer)->LeaveOut(0).code(), StatusCode::kInvalidArgument);  // it is not bound
}

// A shape may claim any number of chunks; only the files that are listed take memory.
TEST_F(BoundArrayTest, AShapeOfManyChunksTakesNoMemory) {
  ArrayEntry entry = BoundEntry(ArrayLayout::kRow);
  entry.rows = std::uint64_t{1} << 58;
  entry.dim = 1;
  entry.chunk_rows = kChunkRows;  // 2^51 chunks
  const std::string text = EncodeArrayJson(entry);
  ASSERT_OK(CreateDirectories(FileSystem::Posix(), dir_ / "arrays/feat"));
  const auto bytes = std::as_bytes(std::span(text));
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), dir_ / "arrays/feat/zarr.json", bytes));
  const std::vector<FileEntry> files = {{.path = "arrays/feat/zarr.json",
                                         .size_bytes = bytes.size(),
                                         .xxh3 = Xxh3(bytes),
                                         .crc32c = Crc32c(bytes)}};
  const auto array = ChunkArray::Open(FileSystem::Posix(), dir_.path(), entry, files);
  ASSERT_OK(array);
  EXPECT_EQ((*array)->slots().size(), 0);
  const ArrayFiles opened(**array, /*direct=*/false);
  float value = 0;
  ASSERT_OK((*array)->ReadRows(entry.rows - 1, 1, std::as_writable_bytes(std::span(&value, 1))));
  EXPECT_TRUE(std::isnan(value));
}

TEST_F(BoundArrayTest, FilesThatAreNoChunksAreRefused) {
  const auto written = WriteBound(dir_.path(), BoundEntry(ArrayLayout::kRow));
  ASSERT_OK(written);
  for (const char* path :
       {"arrays/feat/c.8.0", "arrays/feat/c.01.0", "arrays/feat/c.1", "arrays/feat/extra"}) {
    WrittenArray more = *written;
    more.files.push_back({.path = path, .size_bytes = 12 * kChunkRows, .xxh3 = {}, .crc32c = 0});
    const auto array = Open(more);
    ASSERT_FALSE(array) << path;
    EXPECT_EQ(array.error().code(), StatusCode::kCorruption);
    EXPECT_THAT(array.error().message(), HasSubstr("not the file of a chunk"));
  }
}

TEST_F(BoundArrayTest, RulesOfEntries) {
  const auto refused = [](const ArrayEntry& entry) { return CheckArrayEntry(entry).message(); };
  ArrayEntry entry = BoundEntry(ArrayLayout::kRow);
  EXPECT_OK(CheckArrayEntry(entry));
  entry.attributes.insert(entry.attributes.begin(), {"dimension", "edge_p0001"});
  EXPECT_THAT(refused(entry), HasSubstr("'dimension'"));
  entry = BoundEntry(ArrayLayout::kRow);
  entry.form = ArrayForm::kZeroFill;
  EXPECT_THAT(refused(entry), HasSubstr("form 1"));
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string(513, 'x')}) {
    entry = BoundEntry(ArrayLayout::kRow);
    entry.attributes[0].second = name;
    EXPECT_THAT(refused(entry), HasSubstr("vertex type")) << name;
  }
}

TEST_F(BoundArrayTest, DefaultChunksAreSmallerThanTheRowsOfATypeInAPartition) {
  EXPECT_EQ(RowsOfBoundChunk(128'000, 8), 1000);
  EXPECT_EQ(RowsOfBoundChunk(1, 8), 1);
  EXPECT_EQ(RowsOfBoundChunk(0, 0), 0);
  ArrayEntry entry = BoundEntry(ArrayLayout::kRow);
  entry.rows = 10'000'000;
  entry.chunk_rows = 0;
  ASSERT_OK(ChooseChunkRows(entry, RowsOfBoundChunk(128'000, 8)));
  EXPECT_EQ(entry.chunk_rows, 1024);
  entry.chunk_rows = 0;
  ASSERT_OK(ChooseChunkRows(entry, RowsOfBoundChunk(1'000'000'000, 8)));
  EXPECT_EQ(entry.chunk_rows, 32'768);
}

// The bytes must be those that Zarr's readers derive from the fill value in zarr.json
// (interop_arrays_test.cc compares them with zarr-python's).
TEST_F(BoundArrayTest, FillValuesAreNoRows) {
  const std::map<DataType, std::vector<int>> expected = {
      {DataType::kFloat32, {0x00, 0x00, 0xC0, 0x7F}},
      {DataType::kFloat16, {0x00, 0x7E}},
      {DataType::kBfloat16, {0xC0, 0x7F}},
      {DataType::kFloat64, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F}},
      {DataType::kInt64, {0, 0, 0, 0, 0, 0, 0, 0x80}},
      {DataType::kInt32, {0, 0, 0, 0x80}},
      {DataType::kInt16, {0, 0x80}},
      {DataType::kInt8, {0x80}},
      {DataType::kUint32, {0xFF, 0xFF, 0xFF, 0xFF}},
      {DataType::kUint8, {0xFF}},
      {DataType::kBool, {0}}};
  for (const auto& [dtype, bytes] : expected) {
    const ArrayEntry entry = MakeEntry("a", 1, 2, dtype, ArrayLayout::kRow);
    std::vector<std::byte> row(entry.row_bytes(), std::byte{0x55});
    FillOtherRows(entry, row);
    ASSERT_EQ(row.size(), 2 * bytes.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_EQ(row[i], static_cast<std::byte>(bytes[i % bytes.size()])) << DataTypeName(dtype);
  }
}

Manifest ManifestOf(const ArrayEntry& entry) {
  Manifest manifest;
  manifest.generation = 1;
  manifest.version = 1;
  manifest.info = SmallInfo(kRows);
  manifest.info.vertex_types = {"author", "paper"};
  manifest.arrays = {entry};
  return manifest;
}

TEST(BoundManifestTest, VersionSixHasBoundArrays) {
  const Manifest manifest = ManifestOf(BoundEntry(ArrayLayout::kRow));
  const auto bytes = EncodeManifest(manifest, FixedStoreId());
  EXPECT_EQ(static_cast<int>(bytes[8]), 6);
  const auto read = DecodeManifest(bytes, FixedStoreId());
  ASSERT_OK(read);
  EXPECT_EQ(read->arrays, manifest.arrays);
}

TEST(BoundManifestTest, ATypeOfTheDeltaHasNoChunk) {
  for (const std::vector<std::string>& types :
       {std::vector<std::string>{"author", "paper"}, std::vector<std::string>{"author"}}) {
    Manifest manifest = ManifestOf(BoundEntry(ArrayLayout::kRow));
    manifest.info.vertex_types = types;
    manifest.arrays[0].attributes[0].second = "venue";
    const auto bytes = EncodeManifest(manifest, FixedStoreId());
    EXPECT_EQ(static_cast<int>(bytes[8]), 6);
    auto read = DecodeManifest(bytes, FixedStoreId());
    ASSERT_OK(read);
    EXPECT_EQ(read->arrays, manifest.arrays);
    EXPECT_EQ(EncodeManifest(*read, FixedStoreId()), bytes);
    // Without the array, the manifest is one of one type or of several again.
    read->arrays.clear();
    EXPECT_OK(DecodeManifest(EncodeManifest(*read, FixedStoreId()), FixedStoreId()));
  }
}

TEST(BoundManifestTest, BadBindingsAreRefused) {
  const auto refused = [](const Manifest& manifest) {
    const auto read = DecodeManifest(EncodeManifest(manifest, FixedStoreId()), FixedStoreId());
    return read ? std::string("accepted") : read.error().message();
  };
  Manifest manifest = ManifestOf(BoundEntry(ArrayLayout::kRow));
  manifest.arrays[0].attributes[0].second = "venue";
  manifest.files = {{.path = ChunkPath(manifest.arrays[0].name, 0), .size_bytes = 1}};
  EXPECT_THAT(refused(manifest), HasSubstr("'venue', which is not a vertex type"));
  manifest = ManifestOf(BoundEntry(ArrayLayout::kRow));
  manifest.info.vertices = kRows + 1;
  EXPECT_THAT(refused(manifest), HasSubstr("1000 rows, and there are 1001 vertices"));
  manifest = ManifestOf(BoundEntry(ArrayLayout::kRow));
  manifest.info.vertex_types = {"paper"};
  EXPECT_NE(refused(manifest), "accepted");
}

}  // namespace
}  // namespace rhizome
