#pragma once

#include <cstddef>
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

/// What a row is that no vertex was given: zeros; in `label` (int64) and `split` (uint8), by which
/// a zero means class 0 and the training set, -1 and 255, "none". `out` is one row or several.
void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out);

/// The most inner chunks of a shard: what is held to read one of them is bounded by it.
inline constexpr std::uint64_t kMaxInnerChunksOfShard = std::uint64_t{1} << 16;

inline constexpr std::string_view kSidecarSuffix = ".crc32c";
inline constexpr std::string_view kArraysPrefix = "arrays/";
inline constexpr std::string_view kSumsPrefix = "sums/";
inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kPinName = "PIN";
inline constexpr std::size_t kMaxPathBytes = 1024;
inline constexpr std::size_t kMaxAttributes = 256;
inline constexpr std::size_t kMaxAttributeBytes = 4096;

}  // namespace rhizome
