#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the codecs of arrays in a store, in the order in which help lists them.
std::vector<CodecKind> PublishedCodecs();

/// The levels of a codec are [1, highest]. A codec with highest = 0 has no levels and ignores them.
struct CodecLevels {
  int highest = 0;
  int usual = 1;  ///< the default
};
CodecLevels LevelsOf(CodecKind codec);

/// Compresses `raw`, then appends its CRC-32C (Zarr's crc32c codec) unless the codec is raw.
/// Errors: kInvalidArgument, level out of range, `raw` larger than kMaxChunkBytes, or, for nonzero,
/// elements that do not have four bytes.
Result<std::vector<std::byte>> EncodeChunk(const Codec& codec, std::span<const std::byte> raw);

/// As above, into `out`, of at least MaxEncodedBytes(codec, raw.size()) bytes. Returns the number
/// of bytes written. Errors: as above; kInvalidArgument, `out` is too small.
Result<std::size_t> EncodeChunkInto(const Codec& codec, std::span<const std::byte> raw,
                                    std::span<std::byte> out);

/// Decodes a chunk into `out`. The decoded size is out.size(), which follows from the array's shape
/// and is never taken from the frame: checksum, codec and the sizes in the frame's header are
/// checked before anything is decoded. Never writes outside `out`, even for malicious input.
/// Errors: kCorruption.
Status DecodeChunk(const Codec& codec, std::span<const std::byte> encoded,
                   std::span<std::byte> out);

/// Returns the max size of an encoded chunk of `raw_bytes` bytes. Readers refuse a longer file
/// without reading it.
std::uint64_t MaxEncodedBytes(const Codec& codec, std::uint64_t raw_bytes);

}  // namespace rhizome
