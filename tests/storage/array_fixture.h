#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/store.h"
#include "storage/array/chunk_writer.h"
#include "storage/store/generation_writer.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Returns byte `b` of row `row` by a formula, so that a misplaced row is noticed.
inline std::byte ByteOfRow(std::uint64_t row, std::uint64_t b) {
  return static_cast<std::byte>((row * 131 + b * 7 + row / 256) & 0xFF);
}

inline std::vector<std::byte> RowsByFormula(std::uint64_t first, std::uint64_t count,
                                            std::uint64_t row_bytes) {
  std::vector<std::byte> bytes(count * row_bytes);
  for (std::uint64_t i = 0; i < bytes.size(); ++i)
    bytes[i] = ByteOfRow(first + i / row_bytes, i % row_bytes);
  return bytes;
}

inline ArrayEntry MakeEntry(std::string name, std::uint64_t rows, std::uint64_t dim, DataType dtype,
                            ArrayLayout layout, CodecKind codec = CodecKind::kRaw,
                            std::uint64_t chunk_rows = 0) {
  ArrayEntry entry;
  entry.name = std::move(name);
  entry.rows = rows;
  entry.dim = dim;
  entry.dtype = dtype;
  entry.layout = layout;
  entry.codec = {.kind = codec, .level = 3, .element_bytes = DataTypeBytes(dtype)};
  entry.chunk_rows = chunk_rows;
  entry.array_id = 7;
  return entry;
}

struct WrittenArray {
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
};

/// Writes an array whose rows follow the formula below `root`, which must exist.
inline Result<WrittenArray> WriteByFormula(FileSystem& fs, const Path& root,
                                           const ArrayEntry& wanted) {
  RHIZOME_ASSIGN_OR_RETURN(auto writer, ChunkArrayWriter::Create(fs, root, wanted));
  const ArrayEntry& entry = writer->entry();
  for (std::uint64_t chunk = entry.chunk_count(); chunk-- > 0;) {  // the order does not matter
    const std::uint64_t first = chunk * entry.chunk_rows;
    const std::uint64_t count = std::min(entry.chunk_rows, entry.rows - first);
    RHIZOME_RETURN_IF_ERROR(
        writer->WriteChunk(chunk, RowsByFormula(first, count, entry.row_bytes())));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto files, writer->Finish());
  return WrittenArray{writer->arrays(), std::move(files)};
}

inline StoreId FixedStoreId(unsigned value = 1) {
  StoreId id;
  id.bytes.fill(static_cast<std::byte>(value));
  return id;
}

inline GenerationInfo SmallInfo(std::uint64_t vertices = 10) {
  GenerationInfo info;
  info.vertices = vertices;
  info.partitions = 1;
  info.partitioner = "random";
  info.order = "pds";
  info.vertex_types = {"vertex"};
  info.edge_types = {"edge"};
  return info;
}

/// As SmallInfo, with two vertex types and the ends of two edge types.
inline GenerationInfo TypedInfo() {
  GenerationInfo info = SmallInfo();
  info.vertex_types = {"paper", "author"};
  info.edge_types = {"cites", "writes"};
  info.edge_ends = {{0, 0}, {1, 0}};
  return info;
}

/// Creates a store with one generation: a file topology/part-0000.adj of arbitrary bytes and, if
/// `array`, a row array "feat" of `rows` rows. storage/ does not parse the topology file.
inline Status MakeStore(FileSystem& fs, const Path& path, bool array = true,
                        std::uint64_t rows = 300, GenerationInfo info = SmallInfo()) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(fs, path, FixedStoreId()));
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, GenerationWriter::Create(*store));
  RHIZOME_ASSIGN_OR_RETURN(const auto file, writer->CreateFile("topology/part-0000.adj"));
  RHIZOME_RETURN_IF_ERROR(file->Append(RowsByFormula(0, 10, 20)));
  RHIZOME_RETURN_IF_ERROR(file->Close());
  if (array) {
    RHIZOME_ASSIGN_OR_RETURN(
        const auto written,
        WriteByFormula(fs, writer->root(),
                       MakeEntry("feat", rows, 3, DataType::kFloat32, ArrayLayout::kRow)));
    RHIZOME_RETURN_IF_ERROR(writer->AddArray(written.arrays, written.files));
  }
  info.vertices = rows;
  return writer->Commit(info);
}

}  // namespace rhizome::testing
