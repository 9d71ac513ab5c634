#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

/// Returns the name of an array's first dimension: the value of its attribute "dimension", or
/// "row". Arrays of edges have the attribute ("edge_p0003": one row for each edge id of partition
/// 3).
std::string_view FirstDimension(const ArrayEntry& entry);
inline constexpr std::string_view kDimensionAttribute = "dimension";

/// Returns whether the array has a row for each edge of a partition, not for each vertex.
bool IsOfEdges(const ArrayEntry& entry);

/// The row of a vertex that was given none. It is zeros, except in `label` and `split` and in
/// arrays whose attribute `missing` says so: there it is -1 (int64 or int32) or 255 (uint8),
/// "none", because zero would mean class 0 or the training set.
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills `out`, one or more rows, with such rows.
void FillMissingRows(MissingRow missing, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The attribute: "-1" in arrays of int64 and int32, "255" in those of uint8. Any other value means
/// zeros.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoLabel = "-1";
inline constexpr std::string_view kMissingNoSplit = "255";

/// Returns the value of the attribute for a new array of vertices. Any whole number may be a class
/// or a set, and no vertex gets one that it was not given. Returns nothing if the array's name
/// tells already, or if it has several columns or another type, whose missing rows are zeros.
std::optional<std::string_view> MissingOfNewArray(std::string_view name, DataType dtype,
                                                  std::uint64_t dim);

/// Returns what MissingRowOf says of an array once it has that attribute.
MissingRow MissingRowOfNewArray(std::string_view name, DataType dtype, std::uint64_t dim);

/// The attribute of an array that a repair kept without some of its rows. It lists these rows as
/// DescribeRows does, by their numbers in the order of that time. They hold the values of
/// FillMissingRows.
inline constexpr std::string_view kLostRowsAttribute = "lost_rows";

/// Checks that a user may give a new array this name, when an array is made or renamed. The name
/// must pass CheckName, be short enough for the names that the store derives from it, and be none
/// that the store gives itself: those of versions, checksums, marks of stale rows, coordinates and
/// dimensions, and zarr.json. Stores of older builds may have such arrays. Errors:
/// kInvalidArgument.
Status CheckNewArrayName(std::string_view name);

/// 24 bytes below kMaxNameBytes: they are left for the suffixes that the store appends, such as
/// ".v3" and ".crc32c".
inline constexpr std::size_t kMaxNewArrayNameBytes = 104;

/// The folders of a generation that hold arrays, and the checksums of their rows.
inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";

/// The suffix of the array that holds the checksums of another array's rows.
inline constexpr std::string_view kSidecarSuffix = ".crc32c";

}  // namespace rhizome
