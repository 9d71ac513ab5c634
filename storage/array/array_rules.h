#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/storage/manifest.h"

namespace rhizome {

/// Checks the rules for every array, whether a manifest, a zarr.json or a program describes it:
/// name, dtype, layout, codec and level, shape without overflow, a chunk of at most kMaxChunkBytes,
/// shards of whole inner chunks, attributes sorted by key. Errors: kInvalidArgument.
Status CheckArrayEntry(const ArrayEntry& entry);

/// Checks these rules and those for an array of a store: other programs must be able to read it.
/// Errors: kInvalidArgument.
Status CheckStoredArray(const ArrayEntry& entry);

/// Checks that a manifest may name `path`: it is relative, of names of [A-Za-z0-9_.-] joined by
/// '/', none empty or beginning with a dot, and is not a manifest or PIN. Errors: kInvalidArgument.
Status CheckRelativePath(std::string_view path);

/// Returns the name of an array's first dimension: the value of its attribute "dimension", or
/// "row". Arrays of edges have the attribute ("edge_p0003": one row for each edge id of partition
/// 3).
std::string_view FirstDimension(const ArrayEntry& entry);
inline constexpr std::string_view kDimensionAttribute = "dimension";

/// Returns whether the array has a row for each edge of a partition, not for each vertex.
bool IsOfEdges(const ArrayEntry& entry);

/// The row of a vertex that was given none. It is zeros, except in `label` (int64 or int32) and
/// `split` (uint8), where zero means class 0 or the training set: there it is -1 or 255, "none".
enum class MissingRow : std::uint8_t { kZeros, kNoLabel, kNoSplit };
MissingRow MissingRowOf(std::string_view name, DataType dtype);
MissingRow MissingRowOf(const ArrayEntry& entry);

/// Fills `out`, one or more rows, with such rows.
void FillMissingRows(std::string_view name, DataType dtype, std::span<std::byte> out);
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// An attribute with the value "255" for uint8 arrays of other names that hold sets, as `split`
/// does.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoSplit = "255";

/// The most inner chunks of a shard. It bounds the shard's table, which is in memory while an inner
/// chunk is read (20 bytes for each).
inline constexpr std::uint64_t kMaxInnerChunksOfShard = std::uint64_t{1} << 16;

inline constexpr std::string_view kSidecarSuffix = ".crc32c";
inline constexpr std::string_view kStaleSuffix = ".stale";

/// Checks that a user may give a new array this name, when an array is made or renamed. The name
/// must pass CheckName, be short enough for the names that the store derives from it, and be none
/// that the store gives itself: those of versions, checksums, marks of stale rows, coordinates and
/// dimensions, and zarr.json. Stores of older builds may have such arrays. Errors:
/// kInvalidArgument.
Status CheckNewArrayName(std::string_view name);

/// 24 bytes below kMaxNameBytes: they are left for the suffixes that the store appends, such as
/// ".v3" and ".crc32c".
inline constexpr std::size_t kMaxNewArrayNameBytes = 104;

inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";
inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kPinName = "PIN";

// The limits of storage/FORMAT.md, "Limits".
inline constexpr std::size_t kMaxPathBytes = 1024;
inline constexpr std::size_t kMaxAttributes = 256;
inline constexpr std::size_t kMaxAttributeBytes = 4096;

}  // namespace rhizome
