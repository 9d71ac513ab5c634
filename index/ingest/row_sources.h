#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/ingest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns whether the file holds rows (.npy, .npz, a Zarr folder, an importer's own) and not text.
bool HasRows(FileSystem& fs, const ArrayFile& file);

/// Opens a file of rows, in the dtype of the file (uint64 as int64).
/// Errors: kInvalidArgument, naming the file, also for a file of another kind; kNotFound; kIoError.
/// Errors of reading: kInvalidArgument, an uint64 that does not fit int64.
Result<std::unique_ptr<RowSource>> OpenRows(FileSystem& fs, const ArrayFile& file);

/// Opens a .npy file, or an array in a .npz file: "x.npz:feat".
Result<std::unique_ptr<RowSource>> OpenNpyRows(FileSystem& fs, const Path& path);

/// Opens the folder of a Zarr v3 array that another program wrote. Memory: the rows of one chunk.
Result<std::unique_ptr<RowSource>> OpenZarrRows(FileSystem& fs, const Path& folder);

/// Opens a text table of `rows` lines of numbers without a header; CSV if the name ends in .csv.
/// The first line determines the number of columns. With integers, `missing`, if set, replaces nan
/// and nulls (IsNullWord), and 3.0 is read as 3; among floats, nulls are NaN.
Result<std::unique_ptr<RowSource>> OpenTextRows(FileSystem& fs, const Path& path,
                                                std::uint64_t rows, DataType dtype,
                                                std::optional<std::int64_t> missing);

/// The number of rows of a text table, and the dtype that holds its values: int64 if all are
/// integers, otherwise float32.
struct TextShape {
  std::uint64_t rows = 0;
  DataType dtype = DataType::kFloat32;
};

/// Reads a text table to find its shape.
/// Errors: kInvalidArgument, naming the first line that is malformed, has another number of fields
/// than the first, or a value that is not a finite number.
Result<TextShape> ShapeOfText(FileSystem& fs, const Path& path, const TextDialect& dialect,
                              bool header);

/// Opens a text table of this shape.
Result<std::unique_ptr<RowSource>> OpenTextRows(FileSystem& fs, const Path& path,
                                                const TextDialect& dialect, bool header,
                                                const TextShape& shape);

/// Returns a source of values in memory, one for each row.
std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::int64_t>> values);
std::unique_ptr<RowSource> ColumnRows(std::shared_ptr<const std::vector<std::uint8_t>> values);

/// Concatenates sources. Each begins at its first_row; gaps are filled with `fill`, one element
/// (empty: zeros). `pieces` must not be empty.
/// Errors: kInvalidArgument, the sources differ in dtype or columns, or overlap.
struct RowPiece {
  std::uint64_t first_row = 0;
  std::unique_ptr<RowSource> source;
};
Result<std::unique_ptr<RowSource>> JoinRows(std::vector<RowPiece> pieces, std::uint64_t rows,
                                            std::vector<std::byte> fill);

}  // namespace rhizome
