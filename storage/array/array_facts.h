#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the name of an array's first dimension: the value of its attribute "dimension", or
/// "row". Arrays of edges have that attribute ("edge_p0003": one row per edge id of partition 3).
std::string_view FirstDimension(const ArrayEntry& entry);
inline constexpr std::string_view kDimensionAttribute = "dimension";

/// Returns whether the array has a row for each edge of a partition instead of each vertex.
bool IsOfEdges(const ArrayEntry& entry);

/// The attribute of an array that is bound to one vertex type: the name of the type. Its rows are
/// still numbered as the graph's. Rows of other vertices hold the fill value (FillOtherRows), and a
/// chunk with only such rows has no file (FORMAT.md, "Bound arrays"). A sidecar has the attribute
/// of its array.
inline constexpr std::string_view kVertexTypeAttribute = "vertex_type";

/// Returns the name of the vertex type that the array is bound to; empty if it is not bound.
std::string_view BoundType(const ArrayEntry& entry);
std::string_view BoundType(std::span<const std::pair<std::string, std::string>> attributes);

/// Fills `out`, one or more rows, with the array's fill value: the rows of a bound array that
/// belong to vertices of other types.
void FillOtherRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The row of a vertex for which no row was provided. It is zero, except in `label` and `split` and
/// in arrays with the attribute `missing`: there it is -1 (signed integers) or 255 (uint8), meaning
/// "none", because zero would mean class 0 or the training set.
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills `out`, one or more rows, with such rows.
void FillMissingRows(MissingRow missing, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// Fills `out`, one or more rows that a repair could not save. Edges get the null of their
/// attribute: NaN, or the attribute `null`, or 0 if it has none.
void FillLostRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The attribute `missing`: "-1" in arrays of signed integers, "255" in arrays of uint8. Any other
/// value means zeros.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoLabel = "-1";
inline constexpr std::string_view kMissingNoSplit = "255";

/// Returns the value of the attribute `missing` for a new array of vertices. Any whole number may
/// be a class or a set, so no vertex may get one that was not provided. Returns nullopt if the
/// array's name already determines the value, or if the array has several columns or another type:
/// then missing rows are zeros.
std::optional<std::string_view> MissingOfNewArray(std::string_view name, DataType dtype,
                                                  std::uint64_t dim);

/// Returns what MissingRowOf will return for an array after it got that attribute.
MissingRow MissingRowOfNewArray(std::string_view name, DataType dtype, std::uint64_t dim);

/// The attribute `null` of an array of integers: the value that means that there is none, as a
/// decimal. No other element has it. (Among floats, NaN means null.)
inline constexpr std::string_view kNullAttribute = "null";

/// The attribute `type` of an array of integers: what they are. `timestamp`: microseconds since
/// 1970 in UTC (int64). `bool`: 0 or 1, of a column that bool cannot hold because it has nulls, or
/// that edges have. `text`: codes (int64); code c is the number of text c in the array's dictionary
/// (text_values.h), and -1 for no text. Any other value is for programs.
inline constexpr std::string_view kTypeAttribute = "type";
inline constexpr std::string_view kTypeTimestamp = "timestamp";
inline constexpr std::string_view kTypeBool = "bool";
inline constexpr std::string_view kTypeText = "text";

/// Metadata of an array (ArrayEntry::attributes).
using ArrayAttributes = std::span<const std::pair<std::string, std::string>>;

/// Return the value of the attribute `null`, and of the attribute `type` (empty if there is none).
/// The content of a store is not trusted: a `null` that is no int64 counts as absent.
std::optional<std::int64_t> NullOf(ArrayAttributes attributes);
std::string_view TypeOf(ArrayAttributes attributes);

/// Returns whether the array holds codes of texts.
bool HasTexts(const ArrayEntry& entry);

/// An attribute of `label` with the names of its classes as a JSON list, which some importers set.
inline constexpr std::string_view kLabelNamesAttribute = "label_names";

/// The attribute of an array that a repair kept without some of its rows. It lists these rows in
/// the format of DescribeRows, by their row numbers at the time of the repair. They have the values
/// of FillLostRows.
inline constexpr std::string_view kLostRowsAttribute = "lost_rows";

/// Checks that a user may give a new array this name, when an array is created or renamed. The name
/// must pass CheckName, be short enough for the names that the store derives from it, and not be a
/// name that the store itself assigns: of versions, checksums, marks of stale rows, coordinates and
/// dimensions, and zarr.json. Stores of older builds may contain such arrays.
/// Errors: kInvalidArgument.
Status CheckNewArrayName(std::string_view name);

/// 24 bytes below kMaxNameBytes, to leave space for the suffixes that the store appends, such as
/// ".v3" and ".crc32c".
inline constexpr std::size_t kMaxNewArrayNameBytes = 104;

/// The folders of a generation that contain arrays, the checksums of their rows, and the texts of
/// their codes.
inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";
inline constexpr std::string_view kTextsPrefix = "texts/";

/// The suffix of the array that contains the checksums of another array's rows.
inline constexpr std::string_view kSidecarSuffix = ".crc32c";

}  // namespace rhizome
