#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>

#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "storage/array/array_facts.h"
#include "storage/array/chunk_writer.h"
#include "storage/array_fixture.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

using testing::MakeEntry;

// tests/python/arrays_test.py uses the same formula for the values: k = 31 row + 7 column, mapped
// into the range of the type. All values are exact, so that the test can compare them for equality.
std::uint64_t K(std::uint64_t row, std::uint64_t column) { return 31 * row + 7 * column; }

/// Returns the bits of a float16 that holds the integer `n`, which is below 2048.
std::uint16_t HalfBits(std::uint16_t n) {
  if (n == 0) return 0;
  const int exponent = std::bit_width(n) - 1;
  const auto mantissa = static_cast<std::uint16_t>((n << (10 - exponent)) & 0x3FF);
  return static_cast<std::uint16_t>((exponent + 15) << 10 | mantissa);
}

/// Returns the bits of a bfloat16 that holds the integer `n`: the bits of the float without its
/// lower half, which is zero.
std::uint16_t BrainBits(std::uint8_t n) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(n)) >> 16);
}

void StoreElement(DataType dtype, std::uint64_t k, std::byte* to) {
  switch (dtype) {
    case DataType::kFloat32:
      return StoreLittle(to, std::bit_cast<std::uint32_t>(static_cast<float>(k) / 8 - 100));
    case DataType::kFloat16:
      return StoreLittle(to, HalfBits(static_cast<std::uint16_t>(k % 2048)));
    case DataType::kInt64:
      return StoreLittle(to, static_cast<std::int64_t>(k) * 10'000'000'019 - 5'000'000'000);
    case DataType::kInt32:
      return StoreLittle(to, static_cast<std::int32_t>(k) * 100'003 - 1'000'000);
    case DataType::kUint32:
      return StoreLittle(to, static_cast<std::uint32_t>(4'000'000'000 - k));
    case DataType::kInt16:
      return StoreLittle(to, static_cast<std::int16_t>(static_cast<int>(k % 60'000) - 30'000));
    case DataType::kInt8:
      return StoreLittle(to, static_cast<std::int8_t>(static_cast<int>(k % 200) - 100));
    case DataType::kBool:
      return StoreLittle(to, static_cast<std::uint8_t>(k % 3 == 0));
    case DataType::kFloat64:
      return StoreLittle(to, std::bit_cast<std::uint64_t>(static_cast<double>(k) / 3));
    case DataType::kBfloat16:
      return StoreLittle(to, BrainBits(static_cast<std::uint8_t>(k % 256)));
    default:
      return StoreLittle(to, static_cast<std::uint8_t>(k % 251));
  }
}

// The chunk that bound arrays leave out. Their rows with odd numbers belong to another type, too.
constexpr std::uint64_t kLeftOut = 1;

Status WriteArray(const Path& root, const ArrayEntry& wanted) {
  RHIZOME_ASSIGN_OR_RETURN(const auto writer,
                           ChunkArrayWriter::Create(FileSystem::Posix(), root, wanted));
  const ArrayEntry& entry = writer->entry();
  const std::size_t element_bytes = DataTypeBytes(entry.dtype);
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    const std::uint64_t first = chunk * entry.chunk_rows;
    const std::uint64_t count = std::min(entry.chunk_rows, entry.rows - first);
    std::vector<std::byte> rows(count * entry.row_bytes());
    for (std::uint64_t i = 0; i < count * entry.dim; ++i)
      StoreElement(entry.dtype, K(first + i / entry.dim, i % entry.dim), &rows[i * element_bytes]);
    if (!BoundType(entry).empty() && chunk == kLeftOut) {
      RHIZOME_RETURN_IF_ERROR(writer->LeaveOut(chunk));
      continue;
    }
    for (std::uint64_t i = 1; i < count && !BoundType(entry).empty(); i += 2)
      FillOtherRows(entry, std::span(rows).subspan(i * entry.row_bytes(), entry.row_bytes()));
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, rows));
  }
  RHIZOME_RETURN_IF_ERROR(writer->Finish());
  return Status::Ok();
}

/// Writes an array of `rows` rows for each combination of element type, layout, codec and width.
Status WriteGroup(const Path& root, std::uint64_t rows, std::span<const DataType> dtypes,
                  bool bound = false) {
  for (const DataType dtype : dtypes) {
    for (const CodecKind codec :
         {CodecKind::kRaw, CodecKind::kZstd, CodecKind::kBloscLz4, CodecKind::kBloscZstd}) {
      for (const std::uint64_t dim : {1, 5}) {
        const auto layout = codec == CodecKind::kRaw ? ArrayLayout::kRow : ArrayLayout::kChunk;
        const std::string name =
            std::string(DataTypeName(dtype)) + "." + std::string(CodecName(codec));
        ArrayEntry entry =
            MakeEntry(name + "." + std::to_string(dim), rows, dim, dtype, layout, codec, 128);
        entry.array_id = 0xFEDCBA9876543210;  // exceeds the integer range of a double
        entry.attributes = {{"model", "caf\xC3\xA9"}};
        if (bound) entry.attributes = {{std::string(kVertexTypeAttribute), "paper"}};
        RHIZOME_RETURN_IF_ERROR(WriteArray(root, entry));
      }
    }
  }
  RHIZOME_RETURN_IF_ERROR(WriteArrayGroup(FileSystem::Posix(), root));
  return Status::Ok();
}

// tests/python/arrays_test.py runs this test and reads its arrays with other libraries.
TEST(InteropArraysTest, ArraysForOtherReadersAreWritten) {
  const char* folder = std::getenv("RHIZOME_INTEROP_DIR");
  if (folder == nullptr)
    GTEST_SKIP() << "RHIZOME_INTEROP_DIR names no folder: tests/python/arrays_test.py sets it";
  constexpr std::array kDtypes = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                                  DataType::kInt32,   DataType::kUint32,  DataType::kUint8,
                                  DataType::kBool,    DataType::kInt8,    DataType::kInt16,
                                  DataType::kFloat64};
  // A group of its own, because zarr-python cannot list a group with an array of this type.
  constexpr std::array kBrain = {DataType::kBfloat16};
  for (const std::uint64_t rows : {0, 5, 256, 300}) {
    const Path root = Path(folder) / std::to_string(rows);
    ASSERT_OK(CreateDirectories(FileSystem::Posix(), root));
    ASSERT_OK(WriteGroup(root, rows, kDtypes));
    const Path brain = Path(folder) / (std::to_string(rows) + "-bfloat16");
    ASSERT_OK(CreateDirectories(FileSystem::Posix(), brain));
    ASSERT_OK(WriteGroup(brain, rows, kBrain));
  }
  const Path bound = Path(folder) / "bound";
  ASSERT_OK(CreateDirectories(FileSystem::Posix(), bound));
  ASSERT_OK(WriteGroup(bound, 300, kDtypes, /*bound=*/true));
}

}  // namespace
}  // namespace rhizome
