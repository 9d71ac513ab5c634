#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

/// The first dimension of an array: what its attribute "dimension" says, as arrays of edges have
/// it ("edge_p0003", one row for each edge id of partition 3), or "row".
std::string_view FirstDimension(const ArrayEntry& entry);
inline constexpr std::string_view kDimensionAttribute = "dimension";

/// Does the array have a row for each edge of a partition, not for each vertex?
bool IsOfEdges(const ArrayEntry& entry);

/// What the row of a vertex is that was given none, whoever wrote the array: zeros, but in `label`
/// (int64 or int32) and `split` (uint8), where a zero means class 0 and the training set, -1 and
/// 255, "none".
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(std::string_view name, DataType dtype);
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills one such row, or several.
void FillMissingRows(std::string_view name, DataType dtype, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The attribute of an array that a repair kept without some of its rows: which these were, by
/// number in the order of that time, as DescribeRows has them. They are as FillMissingRows says.
inline constexpr std::string_view kLostRowsAttribute = "lost_rows";

/// May a user give a new array this name, wherever arrays are made or renamed? A name (CheckName)
/// short enough for those that the store makes of it, and none that it gives itself: of versions,
/// checksums and marks of stale rows, of coordinates and dimensions, and zarr.json. Stores that
/// older versions made may have such arrays. Errors: kInvalidArgument.
Status CheckNewArrayName(std::string_view name);
inline constexpr std::size_t kMaxNewArrayNameBytes = 104;
/// The folders of a generation that hold arrays, and the checksums of their rows.
inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";

/// The array that holds the checksums of the rows of an array is named after it, with this behind.
inline constexpr std::string_view kSidecarSuffix = ".crc32c";

}  // namespace rhizome
