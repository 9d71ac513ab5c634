#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The position of an inner chunk in the file of its shard. A missing one consists of the fill
/// value.
struct InnerRange {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t offset_bytes = kNone;
  std::uint64_t size_bytes = kNone;
  bool missing() const { return offset_bytes == kNone && size_bytes == kNone; }
  friend bool operator==(const InnerRange&, const InnerRange&) = default;
};

/// The format of the index of a shard: two uint64 (offset, length) per inner chunk in row-major
/// order, then the checksums. Source: Zarr v3, codec sharding_indexed 1.0.
struct ShardIndexFormat {
  std::uint64_t inner_chunks = 0;
  bool at_start = false;        ///< the index is at the beginning of the file, otherwise at its end
  bool big_endian = false;      ///< of offsets and lengths; checksums are little-endian
  std::uint32_t checksums = 1;  ///< number of crc32c codecs after `bytes`

  std::uint64_t size_bytes() const { return inner_chunks * 16 + checksums * sizeof(std::uint32_t); }
};

/// Max number of inner chunks in a shard of another writer: an index of 64 MiB.
inline constexpr std::uint64_t kMaxInnerChunks = std::uint64_t{1} << 22;

/// Returns "inner chunk 3, bytes [100, 250)", or "inner chunk 3" for a missing one.
std::string DescribeInner(std::uint64_t inner, const InnerRange& range);

/// Encodes an index. `ranges` must have format.inner_chunks elements.
std::vector<std::byte> EncodeShardIndex(const ShardIndexFormat& format,
                                        std::span<const InnerRange> ranges);

/// Decodes the index of a file of `file_bytes` bytes. The returned ranges are inside the file and
/// outside the index, and do not overlap. Accesses no file, so that fuzz/ can drive it.
/// Errors: kCorruption, naming the inner chunk and its bytes.
Result<std::vector<InnerRange>> DecodeShardIndex(const ShardIndexFormat& format,
                                                 std::span<const std::byte> bytes,
                                                 std::uint64_t file_bytes);

/// Reads the index of a shard. Allocates no memory for an index that does not fit in the file.
/// Errors: as for DecodeShardIndex, without the file's name; kIoError.
Result<std::vector<InnerRange>> ReadShardIndex(ReadableFile& file, const ShardIndexFormat& format);

}  // namespace internal
}  // namespace rhizome
