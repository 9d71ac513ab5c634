// Golden files of format 1. tests/storage/golden/write_store_files.py wrote them from
// storage/FORMAT.md alone. All later builds must be able to read them; a change of the bytes needs
// a new version and additional golden files.

#include "testing/golden.h"

#include <gmock/gmock.h>

#include <cstring>

#include "rhizome/chunk_array.h"
#include "rhizome/manifest.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/manifest_format.h"
#include "storage/array/row_reader.h"
#include "storage/array/zarr_format.h"
#include "storage/io/files.h"
#include "storage/section/job_log.h"
#include "storage/store/store_files.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using testing::GoldenStoreId;
using testing::ReadBytes;

Path Folder() { return testing::GoldenFolder("storage"); }

constexpr std::uint64_t kXId = 0xFEDCBA9876543210;
const std::vector<float> kX = {1.5F, -2.0F, 0.25F, 3.0F, -0.125F, 65504.0F};
const std::vector<std::int64_t> kY = {-1, std::int64_t{1} << 40, INT64_MIN};
const std::vector<std::int32_t> kZ = {100000, -100000, 7, 0, 1, 2};
const std::vector<std::string> kRecords = {R"({"model": "gcn", "seed": 7})", "",
                                           "\xc3\xbc 16 bytes long"};

// Returns the four arrays of the first manifest, sorted by name.
std::vector<ArrayEntry> Arrays() {
  const std::vector<std::pair<std::string, std::string>> facts = {{"model", "gcn"},
                                                                  {"note", "a \"\u00fc\""}};
  const Codec raw{.kind = CodecKind::kRaw, .level = 0};
  const Codec zstd{.kind = CodecKind::kZstd, .level = 5, .element_bytes = 8};
  const Codec blosc{.kind = CodecKind::kBloscLz4, .level = 9, .element_bytes = 4};
  const auto f32 = DataType::kFloat32;
  const auto u32 = DataType::kUint32;
  std::vector<ArrayEntry> arrays = {
      {"x", 3, 2, f32, ArrayLayout::kRow, raw, 2, kXId, facts},
      {"x.crc32c", 3, 1, u32, ArrayLayout::kRow, raw, 128, kXId, {}},
      {"y", 3, 1, DataType::kInt64, ArrayLayout::kChunk, zstd, 4, 2, {}},
      {"z.v2", 2, 3, DataType::kInt32, ArrayLayout::kChunk, blosc, 2, 3, {}}};
  for (ArrayEntry& array : arrays) array.form = ArrayForm::kZeroFill;
  return arrays;
}

// Returns the arrays of the second form, which the third manifest has as well.
std::vector<ArrayEntry> ArraysOfSecondForm() {
  const Codec raw{.kind = CodecKind::kRaw, .level = 0};
  const Codec zstd{.kind = CodecKind::kZstd, .level = 5, .element_bytes = 8};
  return {{"f", 3, 2, DataType::kFloat32, ArrayLayout::kRow, raw, 2, kXId, {}},
          {"f.crc32c", 3, 1, DataType::kUint32, ArrayLayout::kRow, raw, 128, kXId, {}},
          {"g", 3, 1, DataType::kInt64, ArrayLayout::kChunk, zstd, 4, 5, {}}};
}

Manifest ThirdManifest() {
  auto manifest = DecodeManifest(ReadBytes(Folder() / "MANIFEST-000003"), GoldenStoreId());
  EXPECT_OK(manifest);
  return manifest ? *std::move(manifest) : Manifest{};
}

Manifest GoldenManifest() {
  auto manifest = DecodeManifest(ReadBytes(Folder() / "MANIFEST-000001"), GoldenStoreId());
  EXPECT_OK(manifest);
  return manifest ? *std::move(manifest) : Manifest{};
}

Result<std::unique_ptr<ChunkArray>> OpenArray(std::string_view name) {
  const Manifest manifest = GoldenManifest();
  const ArrayEntry* entry = manifest.FindArray(name);
  if (entry == nullptr) return Fail(Status::NotFound("no such array in the golden manifest"));
  return ChunkArray::Open(FileSystem::Posix(), Folder(), *entry, manifest.files);
}

template <typename T>
std::vector<T> ReadWhole(std::string_view name, std::size_t elements) {
  const auto array = OpenArray(name);
  EXPECT_OK(array);
  std::vector<T> values(elements);
  if (array) {
    EXPECT_OK(
        (*array)->ReadRows(0, (*array)->entry().rows, std::as_writable_bytes(std::span(values))));
  }
  return values;
}

TEST(StorageGoldenTest, FormatIsReadAndWritten) {
  const auto id = ReadFormat(FileSystem::Posix(), Folder());
  ASSERT_OK(id);
  EXPECT_EQ(*id, GoldenStoreId());
  const std::string text = FormatText(GoldenStoreId());
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()), ReadBytes(Folder() / "FORMAT"));
}

TEST(StorageGoldenTest, ManifestSaysWhatTheGenerationHolds) {
  const Manifest manifest = GoldenManifest();
  EXPECT_EQ(manifest.generation, 4U);
  EXPECT_EQ(manifest.version, 1U);
  const GenerationInfo& info = manifest.info;
  EXPECT_EQ(info.vertices, 3U);
  EXPECT_EQ(info.edges, 5U);
  EXPECT_EQ(info.partitions, 2U);
  EXPECT_EQ(info.id_kind, ExternalIdKind::kString);
  EXPECT_FALSE(info.symmetric);
  EXPECT_TRUE(info.weighted);
  EXPECT_EQ(info.directions, Direction::kOut);
  EXPECT_EQ(info.replication_factor, 1.25);
  EXPECT_EQ(info.vertex_balance, 1.0625);
  EXPECT_EQ(info.edge_balance, 1.5);
  EXPECT_EQ(info.interior_share, 0.375);
  EXPECT_EQ(info.partitioner, "adadne");
  EXPECT_EQ(info.order, "pds");
  EXPECT_THAT(info.vertex_types, ElementsAre("paper", "author"));
  EXPECT_THAT(info.edge_types, ElementsAre("cites", "writes", "likes"));
  EXPECT_EQ(manifest.arrays, Arrays());
  const ArraySeries z{"z", 3, {{"best", {2}}, {"live", {2, 2}}}};
  EXPECT_THAT(manifest.series, ElementsAre(z));
}

// '.' sorts before '/', so the sidecar's files come first.
TEST(StorageGoldenTest, ManifestListsTheFilesThatAreThere) {
  std::vector<FileEntry> expected;
  for (const std::string path :
       {"arrays/x.crc32c/c.0.0", "arrays/x.crc32c/zarr.json", "arrays/x/c.0.0", "arrays/x/c.1.0",
        "arrays/x/zarr.json", "arrays/y/c.0.0", "arrays/y/zarr.json", "arrays/z.v2/c.0.0",
        "arrays/z.v2/zarr.json", "arrays/zarr.json"}) {
    const auto bytes = ReadBytes(Folder() / path);
    expected.push_back({path, bytes.size(), Xxh3(bytes), Crc32c(bytes)});
  }
  EXPECT_EQ(GoldenManifest().files, expected);
}

TEST(StorageGoldenTest, ManifestIsWrittenTheSame) {
  EXPECT_EQ(EncodeManifest(GoldenManifest(), GoldenStoreId()),
            ReadBytes(Folder() / "MANIFEST-000001"));
}

TEST(StorageGoldenTest, ChunksOfEveryLayoutAreRead) {
  EXPECT_EQ(ReadWhole<float>("x", 6), kX);
  EXPECT_EQ(ReadWhole<std::int64_t>("y", 3), kY);
  EXPECT_EQ(ReadWhole<std::int32_t>("z", 6), kZ);
}

TEST(StorageGoldenTest, RowsAreReadAndCheckedAgainstTheSidecar) {
  const auto array = OpenArray("x");
  const auto sidecar = OpenArray("x.crc32c");
  ASSERT_OK(array);
  ASSERT_OK(sidecar);
  const auto reader = RowReader::Open(**array, **sidecar, {});
  ASSERT_OK(reader);
  std::vector<float> out(6);
  const auto bytes = std::as_writable_bytes(std::span(out));
  std::vector<RowTarget> targets = {{2, bytes.data()}, {0, &bytes[8]}, {1, &bytes[16]}};
  ASSERT_OK((*reader)->Read(targets));
  EXPECT_EQ(out, (std::vector<float>{kX[4], kX[5], kX[0], kX[1], kX[2], kX[3]}));

  const auto sums = ReadWhole<std::uint32_t>("x.crc32c", 3);
  for (std::uint64_t row = 0; row < 3; ++row)
    EXPECT_EQ(sums[row], RowCrc(kXId, row, std::as_bytes(std::span(kX).subspan(2 * row, 2))));
}

TEST(StorageGoldenTest, RowArrayIsWrittenTheSame) {
  const testing::TempDir folder;
  FileSystem& fs = FileSystem::Posix();
  const auto group = WriteArrayGroup(fs, folder.path());
  ASSERT_OK(group);
  const auto writer = ChunkArrayWriter::Create(fs, folder.path(), ArraysOfSecondForm()[0]);
  ASSERT_OK(writer);
  const auto rows = std::as_bytes(std::span(kX));
  ASSERT_OK((*writer)->WriteChunk(1, rows.subspan(16)));
  ASSERT_OK((*writer)->WriteChunk(0, rows.first(16)));
  auto files = (*writer)->Finish();
  ASSERT_OK(files);
  EXPECT_EQ((*writer)->arrays(),
            (std::vector<ArrayEntry>{ArraysOfSecondForm()[0], ArraysOfSecondForm()[1]}));

  files->push_back(*group);
  const Manifest manifest = ThirdManifest();
  for (const FileEntry& file : *files) {
    ASSERT_NE(manifest.FindFile(file.path), nullptr) << file.path;
    EXPECT_EQ(file, *manifest.FindFile(file.path)) << file.path;
    EXPECT_EQ(ReadBytes(folder / file.path), ReadBytes(Folder() / file.path)) << file.path;
  }
  EXPECT_EQ(files->size(), 6U);
}

// A compressor may change its output, but the metadata must remain the same.
TEST(StorageGoldenTest, ArrayMetadataIsWrittenTheSame) {
  std::vector<ArrayEntry> arrays = Arrays();
  for (const ArrayEntry& array : ArraysOfSecondForm()) arrays.push_back(array);
  for (const ArrayEntry& array : arrays) {
    const std::string text = EncodeArrayJson(array);
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()),
              ReadBytes(Folder() / ArrayFolder(array.name, array.form) / "zarr.json"))
        << text;
  }
}

// Version 3 has the arrays of version 2 and arrays of the second form, and keeps two generations.
TEST(StorageGoldenTest, TheSecondFormIsRead) {
  const Manifest manifest = ThirdManifest();
  EXPECT_EQ(EncodeManifest(manifest, GoldenStoreId()), ReadBytes(Folder() / "MANIFEST-000003"));
  EXPECT_EQ(manifest.keep, (KeepRule{2, std::uint64_t{1} << 30}));
  EXPECT_EQ(manifest.arrays.size(), 8U);
  for (const ArrayEntry& wanted : ArraysOfSecondForm()) {
    const ArrayEntry* entry = manifest.FindArray(wanted.name);
    ASSERT_NE(entry, nullptr) << wanted.name;
    EXPECT_EQ(*entry, wanted);
    const auto array = ChunkArray::Open(FileSystem::Posix(), Folder(), *entry, manifest.files);
    ASSERT_OK(array);
    std::vector<std::byte> rows(3 * wanted.row_bytes());
    ASSERT_OK((*array)->ReadRows(0, 3, rows));
    if (wanted.name == "f") {
      EXPECT_EQ(std::memcmp(rows.data(), kX.data(), rows.size()), 0);
    }
    if (wanted.name == "g") {
      EXPECT_EQ(std::memcmp(rows.data(), kY.data(), rows.size()), 0);
    }
  }
}

// Version 6 has the ends of the edge types, and otherwise the content of version 3.
TEST(StorageGoldenTest, TheEndsOfEdgeTypesAreRead) {
  const auto bytes = ReadBytes(Folder() / "MANIFEST-000006");
  const auto manifest = DecodeManifest(bytes, GoldenStoreId());
  ASSERT_OK(manifest);
  EXPECT_EQ(EncodeManifest(*manifest, GoldenStoreId()), bytes);
  EXPECT_THAT(manifest->info.edge_ends,
              ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}, EdgeEnds{kSeveralTypes, 1}));
  EXPECT_EQ(manifest->arrays, ThirdManifest().arrays);
  EXPECT_EQ(manifest->files, ThirdManifest().files);
  EXPECT_TRUE(ThirdManifest().info.edge_ends.empty());
}

// Version 2 of the manifest has the arrays of version 1 and an array whose chunks are shards.
TEST(StorageGoldenTest, ShardsAreReadAndWrittenTheSame) {
  const auto bytes = ReadBytes(Folder() / "MANIFEST-000002");
  const auto manifest = DecodeManifest(bytes, GoldenStoreId());
  ASSERT_OK(manifest);
  EXPECT_EQ(EncodeManifest(*manifest, GoldenStoreId()), bytes);
  const Codec raw{.kind = CodecKind::kRaw, .level = 0};
  ArrayEntry w{"w", 5, 2, DataType::kFloat32, ArrayLayout::kChunk, raw, 4, 4, {}};
  w.inner_rows = 2;
  w.form = ArrayForm::kZeroFill;
  auto expected = Arrays();
  expected.insert(expected.begin(), w);
  EXPECT_EQ(manifest->arrays, expected);

  const std::vector<float> values = {0.5F, 1.0F, 2.0F, -3.0F, 0.0F, 0.0F, 4.0F, 5.5F, -6.0F, 7.0F};
  FileSystem& fs = FileSystem::Posix();
  const auto array = ChunkArray::Open(fs, Folder(), w, manifest->files);
  ASSERT_OK(array);
  std::vector<float> read(values.size());
  ASSERT_OK((*array)->ReadRows(0, 5, std::as_writable_bytes(std::span(read))));
  EXPECT_EQ(read, values);
  ASSERT_OK((*array)->ReadRows(3, 1, std::as_writable_bytes(std::span(read).first(2))));
  EXPECT_EQ(read[1], 5.5F);

  const testing::TempDir folder;
  const auto writer = ChunkArrayWriter::Create(fs, folder.path(), w);
  ASSERT_OK(writer);
  const auto rows = std::as_bytes(std::span(values));
  ASSERT_OK((*writer)->WriteChunk(0, rows.first(32)));
  ASSERT_OK((*writer)->WriteChunk(1, rows.subspan(32)));
  const auto files = (*writer)->Finish();
  ASSERT_OK(files);
  EXPECT_EQ(files->size(), 3U);
  for (const FileEntry& file : *files) {
    if (file.path.ends_with("zarr.json")) continue;  // new arrays have the second form
    ASSERT_NE(manifest->FindFile(file.path), nullptr) << file.path;
    EXPECT_EQ(file, *manifest->FindFile(file.path)) << file.path;
    EXPECT_EQ(ReadBytes(folder / file.path), ReadBytes(Folder() / file.path)) << file.path;
  }
}

TEST(StorageGoldenTest, JobLogIsReadContinuedAndWrittenTheSame) {
  const testing::TempDir folder;
  FileSystem& fs = FileSystem::Posix();
  std::filesystem::copy_file(Folder() / "LOG", folder / "copy");
  {
    const auto log = JobLog::Open(fs, folder / "copy");
    ASSERT_OK(log);
    EXPECT_EQ((*log)->records(), kRecords);
    ASSERT_OK((*log)->Append("more"));
  }
  {
    const auto log = JobLog::Open(fs, folder / "copy");
    ASSERT_OK(log);
    ASSERT_EQ((*log)->records().size(), 4U);
    EXPECT_EQ((*log)->records().back(), "more");
  }
  {
    const auto log = JobLog::Open(fs, folder / "LOG");
    ASSERT_OK(log);
    for (const std::string& record : kRecords) ASSERT_OK((*log)->Append(record));
  }
  EXPECT_EQ(ReadBytes(folder / "LOG"), ReadBytes(Folder() / "LOG"));
}

TEST(StorageGoldenTest, TheScriptWritesTheCommittedBytes) {
  testing::ExpectScriptWrites(Folder(), "write_store_files.py");
}

}  // namespace
}  // namespace rhizome
