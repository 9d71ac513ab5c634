#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/manifest.h"
#include "storage/array/array_facts.h"

namespace rhizome {
inline namespace internal {

/// Checks the rules for every array, whether described by a manifest, a zarr.json or a program:
/// name, dtype, layout, codec and level, shape without overflow, chunks of at most kMaxChunkBytes,
/// shards of whole inner chunks, attributes sorted by key. Errors: kInvalidArgument.
Status CheckArrayEntry(const ArrayEntry& entry);

/// Checks these rules and the additional ones for an array of a store, which other programs must be
/// able to read. Errors: kInvalidArgument.
Status CheckStoredArray(const ArrayEntry& entry);

/// Checks that a manifest may name `path`: a relative path of names of [A-Za-z0-9_.-] joined by
/// '/', none of them empty or starting with a dot, and not a manifest or PIN. Errors:
/// kInvalidArgument.
Status CheckRelativePath(std::string_view path);

/// Max number of inner chunks of a shard. It bounds the shard's table, which is in memory while an
/// inner chunk is read (20 bytes per inner chunk).
inline constexpr std::uint64_t kMaxInnerChunksOfShard = std::uint64_t{1} << 16;

inline constexpr std::string_view kStaleSuffix = ".stale";

inline constexpr std::string_view kManifestPrefix = "MANIFEST-";
inline constexpr std::string_view kPinName = "PIN";

// The limits of storage/FORMAT.md, "Limits".
inline constexpr std::size_t kMaxPathBytes = 1024;
inline constexpr std::size_t kMaxAttributes = 256;
inline constexpr std::size_t kMaxAttributeBytes = 4096;

}  // namespace internal
}  // namespace rhizome
