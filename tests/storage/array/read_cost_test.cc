#include "storage/array/read_cost.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::uint64_t kChunks = 8;

/// Creates an array with `chunk_bytes` bytes per chunk whose files are sparse, since only the cost
/// of reading matters.
Result<std::unique_ptr<ChunkArray>> MakeHoles(const Path& root, std::uint64_t chunk_bytes) {
  FileSystem& fs = FileSystem::Posix();
  const std::uint64_t rows = chunk_bytes / (256 * sizeof(float));
  const ArrayEntry entry{.name = "x",
                         .rows = kChunks * rows,
                         .dim = 256,
                         .dtype = DataType::kFloat32,
                         .layout = ArrayLayout::kChunk,
                         .codec = {},
                         .chunk_rows = rows,
                         .array_id = 7,
                         .attributes = {}};
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, ChunkArrayWriter::Create(fs, root, entry));
  for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    const std::string path = ChunkPath("x", chunk);
    std::ofstream(root / path).close();
    std::filesystem::resize_file(root / path, chunk_bytes);
    RHIZOME_RETURN_IF_ERROR(writer->AdoptChunk(
        chunk, {.path = path, .size_bytes = chunk_bytes, .xxh3 = {}, .crc32c = 0}));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<FileEntry> files, writer->Finish());
  return ChunkArray::Open(fs, root, writer->entry(), files);
}

TEST(ReadCostTest, AGapIsAThirdOfWhatAReadCosts) {
  ReadCost cost{.seconds_per_read = 3e-6, .bytes_per_second = 1e9};
  EXPECT_EQ(cost.gap_bytes(), 1000U);
  EXPECT_DOUBLE_EQ(cost.SecondsFor(500'000), 5e-4);
  cost.fixed_gap_bytes = 17;
  EXPECT_EQ(cost.gap_bytes(), 17U);
}

TEST(ReadCostTest, ASmallArrayTellsNothing) {
  const TempDir folder;
  const auto array = MakeHoles(folder.path(), std::uint64_t{1} << 20);
  ASSERT_OK(array);
  const auto cost = MeasureReadCost(**array, {});
  ASSERT_OK(cost);
  EXPECT_EQ(cost->seconds_per_read, ReadCost().seconds_per_read);
  EXPECT_EQ(cost->bytes_per_second, ReadCost().bytes_per_second);
  const auto depth = MeasureDepth(**array, {.depth = 5});
  ASSERT_OK(depth);
  EXPECT_EQ(*depth, 5U);
}

TEST(ReadCostTest, ALargeOneIsMeasured) {
  const TempDir folder;
  const auto array = MakeHoles(folder.path(), kMinMeasuredBytes / kChunks);
  ASSERT_OK(array);
  for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
    const auto cost = MeasureReadCost(**array, {.maker = maker});
    ASSERT_OK(cost);
    EXPECT_GT(cost->seconds_per_read, 0);
    EXPECT_GT(cost->bytes_per_second, 0);
    EXPECT_LT(cost->seconds_per_read, 1);
    const auto depth = MeasureDepth(**array, {.maker = maker});
    ASSERT_OK(depth);
    EXPECT_TRUE((std::set<std::uint32_t>{16, 32, 64, 128}).contains(*depth)) << *depth;
  }
}

TEST(ReadCostTest, AMissingChunkIsNamed) {
  const TempDir folder;
  const auto array = MakeHoles(folder.path(), kMinMeasuredBytes / kChunks);
  ASSERT_OK(array);
  std::filesystem::remove(folder / ChunkPath("x", 3));
  for (const Status& status : {testing::AsStatus(MeasureReadCost(**array, {})),
                               testing::AsStatus(MeasureDepth(**array, {}))}) {
    EXPECT_EQ(status.code(), StatusCode::kCorruption);
    EXPECT_NE(status.message().find(ChunkPath("x", 3)), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace rhizome
