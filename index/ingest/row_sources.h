#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/index/ingest_options.h"
#include "rhizome/index/row_source.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// Does the file hold rows (.npy, a Zarr folder, an importer's own), not triplets?
bool HasRows(FileSystem& fs, const ArrayFile& file);

/// Opens such a file. float64 is read as float32 where ArrayFile::dtype asks for floats.
/// Errors: kInvalidArgument naming the file, also for a file of another kind; kNotFound; kIoError.
Result<std::unique_ptr<RowSource>> OpenRows(FileSystem& fs, const ArrayFile& file);

/// A .npy file.
Result<std::unique_ptr<RowSource>> OpenNpyRows(FileSystem& fs, const Path& path, bool float64);

/// The folder of a Zarr v3 array of another writer. Holds as many rows as one chunk has.
Result<std::unique_ptr<RowSource>> OpenZarrRows(FileSystem& fs, const Path& folder, bool float64);

/// A text table of `rows` lines of numbers without a header, CSV by name. The first line tells how
/// many columns there are. dtype: kFloat32; or kInt64, where `missing` stands for nan and empty
/// fields, if it is there, and 3.0 is 3.
Result<std::unique_ptr<RowSource>> OpenTextRows(FileSystem& fs, const Path& path,
                                                std::uint64_t rows, DataType dtype,
                                                std::optional<std::int64_t> missing);

/// Values that are in memory, one a row.
std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::int64_t>> values);
std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::uint8_t>> values);

/// Sources that follow one another with gaps: each begins at its row. Rows that none has are
/// filled with `fill`, one element (nothing: zeros). Errors: kInvalidArgument, they differ in dtype
/// or columns; `pieces` is not empty.
struct RowPiece {
  std::uint64_t first_row = 0;
  std::unique_ptr<RowSource> source;
};
Result<std::unique_ptr<RowSource>> JoinRows(std::vector<RowPiece> pieces, std::uint64_t rows,
                                            std::vector<std::byte> fill);

}  // namespace rhizome
