#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/storage/array_facts.h"
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

/// An attribute, "255", of arrays of other names (uint8) that hold sets, as `split` does.
inline constexpr std::string_view kMissingAttribute = "missing";
inline constexpr std::string_view kMissingNoSplit = "255";

/// The most inner chunks of a shard: what is held to read one of them is bounded by it.
inline constexpr std::uint64_t kMaxInnerChunksOfShard = std::uint64_t{1} << 16;

inline constexpr std::string_view kStaleSuffix = ".stale";

inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kPinName = "PIN";
inline constexpr std::size_t kMaxPathBytes = 1024;
inline constexpr std::size_t kMaxAttributes = 256;
inline constexpr std::size_t kMaxAttributeBytes = 4096;

}  // namespace internal
}  // namespace rhizome
