#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/manifest.h"
#include "rhizome/storage/shard_index.h"

namespace rhizome::inline internal {

/// The file of a chunk that is a shard (storage/FORMAT.md, "Shards"): its inner chunks one after
/// another, the table of their sums, Zarr's index. Those that hold no row of the shape are missing.
///
/// A shard's file has a CRC-32C that says nothing of its inner chunks, because each ends in its
/// own. But the table does, and the file's CRC-32C follows from the table and the lengths: so who
/// has read the end of the file knows whether it is the file that the manifest names, and then
/// whether an inner chunk is the one that belongs there, without the rest.
struct ShardTable {
  std::vector<InnerRange> ranges;   ///< [inner chunks of a shard]
  std::vector<std::uint32_t> sums;  ///< what each ends in; 0 of a missing one
};

/// Inner chunks of a shard of `entry`, which is sharded; of those, those that are there if the
/// shard holds `rows` rows.
std::uint64_t InnerChunks(const ArrayEntry& entry);
std::uint64_t InnerChunks(const ArrayEntry& entry, std::uint64_t rows);

/// Bytes of table and index together: the end of the file.
std::uint64_t ShardTailBytes(const ArrayEntry& entry);

/// The most bytes that the file of a shard can have, and an inner chunk.
std::uint64_t MaxShardBytes(const ArrayEntry& entry);
std::uint64_t MaxInnerBytes(const ArrayEntry& entry);

/// The file's bytes. `rows`: those of the shape, row-major. Errors: those of EncodeChunk.
Result<std::vector<std::byte>> EncodeShard(const ArrayEntry& entry,
                                           std::span<const std::byte> rows);

/// Parses the last ShardTailBytes of the file of a shard that holds `rows` rows, and compares them
/// with what the manifest says of the file. Touches no file, so that fuzz/ can drive it.
/// Errors: kCorruption naming the bytes.
Result<ShardTable> DecodeShardTail(const ArrayEntry& entry, std::uint64_t rows,
                                   std::span<const std::byte> tail, const FileEntry& file);

/// Decodes inner chunk `inner` into its rows of the shape (`out`, whole rows) from its bytes.
/// Errors: kCorruption naming inner chunk and bytes.
Status DecodeInner(const ArrayEntry& entry, const ShardTable& table, std::uint64_t inner,
                   std::span<const std::byte> encoded, std::span<std::byte> out);

/// What is wrong with a shard, and from which byte on.
struct ShardDamage {
  std::uint64_t offset_bytes = 0;
  std::string what;
};

/// Everything that is wrong with the bytes of a shard's file; empty if nothing is, but then they
/// may still be those of another one.
std::vector<ShardDamage> FindShardDamage(const ArrayEntry& entry, std::uint64_t rows,
                                         std::span<const std::byte> bytes, const FileEntry& file);

}  // namespace rhizome::inline internal
