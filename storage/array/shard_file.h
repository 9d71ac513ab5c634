#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/manifest.h"
#include "rhizome/storage/shard_index.h"

namespace rhizome::inline internal {

/// The tables at the end of a shard's file (storage/FORMAT.md, "Shards"). The file holds the inner
/// chunks one after another, the table of their checksums, and Zarr's index. Inner chunks without a
/// row of the shape are missing.
///
/// Each inner chunk ends in its own CRC-32C, so the CRC-32C of the file does not depend on their
/// contents. It follows from the table and the lengths alone. So a reader that has only the end of
/// the file can tell whether this is the file that the manifest names, and, by the table, whether
/// an inner chunk is the one that belongs there.
struct ShardTable {
  std::vector<InnerRange> ranges;   ///< [inner chunks of a shard]
  std::vector<std::uint32_t> sums;  ///< the CRC-32C that each ends in; 0 for a missing one
};

/// Returns the number of inner chunks of a shard of `entry`, which is sharded; with `rows`, the
/// number that exist in a shard of `rows` rows.
std::uint64_t InnerChunks(const ArrayEntry& entry);
std::uint64_t InnerChunks(const ArrayEntry& entry, std::uint64_t rows);

/// Returns the bytes of table and index, which end the file.
std::uint64_t ShardTailBytes(const ArrayEntry& entry);

/// Return the most bytes that a shard's file, or an inner chunk, can have.
std::uint64_t MaxShardBytes(const ArrayEntry& entry);
std::uint64_t MaxInnerBytes(const ArrayEntry& entry);

/// Makes the bytes of a shard's file from its rows of the shape, row-major. Errors: those of
/// EncodeChunk.
Result<std::vector<std::byte>> EncodeShard(const ArrayEntry& entry,
                                           std::span<const std::byte> rows);

/// Parses `tail`, the last ShardTailBytes of the file of a shard with `rows` rows, and compares it
/// with `file`, the manifest's entry. Touches no file, so that fuzz/ can drive it.
/// Errors: kCorruption naming the bytes.
Result<ShardTable> DecodeShardTail(const ArrayEntry& entry, std::uint64_t rows,
                                   std::span<const std::byte> tail, const FileEntry& file);

/// Decodes the bytes of inner chunk `inner` into `out`, its rows of the shape. Errors: kCorruption
/// naming inner chunk and bytes.
Status DecodeInner(const ArrayEntry& entry, const ShardTable& table, std::uint64_t inner,
                   std::span<const std::byte> encoded, std::span<std::byte> out);

/// A defect of a shard, and the offset in its file at which it begins.
struct ShardDamage {
  std::uint64_t offset_bytes = 0;
  std::string what;
};

/// Returns all defects of the bytes of a shard's file. An empty result does not prove that it is
/// the file that the manifest names: only its hash does.
std::vector<ShardDamage> FindShardDamage(const ArrayEntry& entry, std::uint64_t rows,
                                         std::span<const std::byte> bytes, const FileEntry& file);

}  // namespace rhizome::inline internal
