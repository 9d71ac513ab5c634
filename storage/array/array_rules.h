#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/storage/manifest.h"

namespace rhizome {

/// What every array must be, whoever describes it: a manifest, a zarr.json or a program. Name,
/// dtype, layout, codec and level, shape without overflow, a chunk of at most kMaxChunkBytes,
/// shards of whole inner chunks, attributes sorted by key. Errors: kInvalidArgument.
Status CheckArrayEntry(const ArrayEntry& entry);

/// And what an array of a store must be: one that other programs can read.
Status CheckStoredArray(const ArrayEntry& entry);

/// Is `path` one that a manifest may name: relative, names of [A-Za-z0-9_.-] joined by '/', none
/// empty or beginning with a dot, and not a manifest or PIN? Errors: kInvalidArgument.
Status CheckRelativePath(std::string_view path);

/// The first dimension of an array: what its attribute "dimension" says, as arrays of edges have
/// it ("edge_p0003", one row for each edge id of partition 3), or "row".
std::string_view FirstDimension(const ArrayEntry& entry);
inline constexpr std::string_view kDimensionAttribute = "dimension";

/// Does the array have a row for each edge of a partition, not for each vertex?
bool IsOfEdges(const ArrayEntry& entry);

/// What the row of a vertex is that was given none, whoever wrote the array: zeros, but -1 (int64
/// or int32) and 255 (uint8), "none", in `label` and `split` and in arrays whose attribute
/// `missing` says so. There a zero means class 0, and the training set.
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills one such row, or several.
void FillMissingRows(MissingRow missing, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The attribute, "-1" of int64 and int32, "255" of uint8; any other value: zeros.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoLabel = "-1";
inline constexpr std::string_view kMissingNoSplit = "255";

/// The value of the attribute that a new array of vertices gets: any whole number may be a class or
/// a set, and no vertex becomes one that it was not given. Nothing: its name tells, or it has
/// several columns or another type, and zeros.
std::optional<std::string_view> MissingOfNewArray(std::string_view name, DataType dtype,
                                                  std::uint64_t dim);

/// What MissingRowOf says of an array once it has that attribute.
MissingRow MissingRowOfNewArray(std::string_view name, DataType dtype, std::uint64_t dim);

/// The most inner chunks of a shard: what is held to read one of them is bounded by it.
inline constexpr std::uint64_t kMaxInnerChunksOfShard = std::uint64_t{1} << 16;

inline constexpr std::string_view kSidecarSuffix = ".crc32c";
inline constexpr std::string_view kStaleSuffix = ".stale";

/// May a user give a new array this name, wherever arrays are made or renamed? A name (CheckName)
/// short enough for those that the store makes of it, and none that it gives itself: of versions,
/// checksums and marks of stale rows, of coordinates and dimensions, and zarr.json. Stores that
/// older versions made may have such arrays. Errors: kInvalidArgument.
Status CheckNewArrayName(std::string_view name);
inline constexpr std::size_t kMaxNewArrayNameBytes = 104;
inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";
inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kPinName = "PIN";
inline constexpr std::size_t kMaxPathBytes = 1024;
inline constexpr std::size_t kMaxAttributes = 256;
inline constexpr std::size_t kMaxAttributeBytes = 4096;

}  // namespace rhizome
