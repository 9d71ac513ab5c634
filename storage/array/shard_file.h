#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/manifest.h"
#include "storage/array/shard_index.h"

namespace rhizome {
inline namespace internal {

/// The tables at the end of a shard's file (storage/FORMAT.md, "Shards"). The file contains the
/// inner chunks one after another, the table of their checksums, and Zarr's index. Inner chunks
/// without a row of the shape are missing.
///
/// Each inner chunk ends in its own CRC-32C, so the CRC-32C of the file does not depend on their
/// contents, but only on the table and the lengths. Thus a reader that has only the end of the file
/// can verify that it is the file named by the manifest, and, using the table, that an inner chunk
/// belongs there.
struct ShardTable {
  std::vector<InnerRange> ranges;   ///< [inner chunks of a shard]
  std::vector<std::uint32_t> sums;  ///< CRC-32C at the end of each inner chunk; 0: missing
};

/// Returns the number of inner chunks of a shard of `entry`, which must be sharded; with `rows`,
/// the number that exist in a shard of `rows` rows.
std::uint64_t InnerChunks(const ArrayEntry& entry);
std::uint64_t InnerChunks(const ArrayEntry& entry, std::uint64_t rows);

/// Returns the bytes of table and index, at the end of the file.
std::uint64_t ShardTailBytes(const ArrayEntry& entry);

/// Return the max size in bytes of a shard's file, and of an inner chunk.
std::uint64_t MaxShardBytes(const ArrayEntry& entry);
std::uint64_t MaxInnerBytes(const ArrayEntry& entry);

/// Creates the bytes of a shard's file from its rows within the shape, row-major. Errors: as for
/// EncodeChunk.
Result<std::vector<std::byte>> EncodeShard(const ArrayEntry& entry,
                                           std::span<const std::byte> rows);

/// Parses `tail`, the last ShardTailBytes of the file of a shard with `rows` rows, and compares it
/// with `file`, the manifest's entry. Accesses no file, so that fuzz/ can drive it.
/// Errors: kCorruption, naming the bytes.
Result<ShardTable> DecodeShardTail(const ArrayEntry& entry, std::uint64_t rows,
                                   std::span<const std::byte> tail, const FileEntry& file);

/// Decodes the bytes of inner chunk `inner` into `out`, its rows within the shape. Errors:
/// kCorruption, naming inner chunk and bytes.
Status DecodeInner(const ArrayEntry& entry, const ShardTable& table, std::uint64_t inner,
                   std::span<const std::byte> encoded, std::span<std::byte> out);

/// A defect of a shard, and its offset in the file.
struct ShardDamage {
  std::uint64_t offset_bytes = 0;
  std::string what;
};

/// Returns all defects of the bytes of a shard's file. An empty result does not prove that it is
/// the file that the manifest names: only its hash does.
std::vector<ShardDamage> FindShardDamage(const ArrayEntry& entry, std::uint64_t rows,
                                         std::span<const std::byte> bytes, const FileEntry& file);

}  // namespace internal
}  // namespace rhizome
