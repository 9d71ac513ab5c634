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
#include "rhizome/text_dialect.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns whether the file holds rows (.npy, .npz, a Zarr folder, an importer's own) and not text.
bool HasRows(FileSystem& fs, const ArrayFile& file);

/// Treatment of float64 values in a file.
enum class Float64 : std::uint8_t {
  kRefused,
  kRounded,      ///< rounded to float32; a number beyond float32 is refused
  kKeepsNonzero  ///< as kRounded; a nonzero number that would become 0 is refused
};

/// Opens a file of rows. `float64` applies if ArrayFile::dtype is a float type; otherwise float64
/// is refused.
/// Errors: kInvalidArgument, naming the file, also for a file of another kind; kNotFound; kIoError.
/// Errors of reading: kInvalidArgument, a float64 that is refused.
Result<std::unique_ptr<RowSource>> OpenRows(FileSystem& fs, const ArrayFile& file,
                                            Float64 float64 = Float64::kRounded);

/// Opens a .npy file, or an array in a .npz file: "x.npz:feat".
Result<std::unique_ptr<RowSource>> OpenNpyRows(FileSystem& fs, const Path& path, Float64 float64);

/// Opens the folder of a Zarr v3 array that another program wrote. Memory: the rows of one chunk.
Result<std::unique_ptr<RowSource>> OpenZarrRows(FileSystem& fs, const Path& folder,
                                                Float64 float64);

/// Opens a text table of `rows` lines of numbers without a header; CSV if the name ends in .csv.
/// The first line determines the number of columns. `dtype` is kFloat32 or kInt64; with kInt64,
/// `missing`, if set, replaces nan and empty fields, and 3.0 is read as 3.
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
