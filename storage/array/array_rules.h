#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

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

/// What the row of a vertex is that was given none, whoever wrote the array: zeros, but in `label`
/// (int64 or int32) and `split` (uint8), where a zero means class 0 and the training set, -1 and
/// 255, "none".
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(std::string_view name, DataType dtype);
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills one such row, or several.
void FillMissingRows(std::string_view name, DataType dtype, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// An attribute, "255", of arrays of other names (uint8) that hold sets, as `split` does.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoSplit = "255";

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

}  // namespace internal
}  // namespace rhizome
