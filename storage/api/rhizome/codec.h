#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/dtype.h"
#include "rhizome/export.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// The compression of a chunk. Stored on disk: never renumber, only append. blosclz is neither
/// written nor read: its decoder has an unfixed heap overflow (c-blosc #405).
enum class CodecKind : std::uint8_t {
  kInvalid = 0,
  kRaw = 1,
  kZstd = 2,
  kBloscLz4 = 3,
  kBloscZstd = 4,
  kNonzero = 5,  ///< only for arrays that are internal to a job: Zarr has no such codec
};

/// Returns "raw", "zstd", "blosc-lz4", "blosc-zstd" or "nonzero"; "invalid" for others.
std::string_view CodecName(CodecKind codec);

/// The inverse of CodecName, for codecs of arrays in a store (not nonzero).
std::optional<CodecKind> ParseCodec(std::string_view name);

/// Returns the codecs of arrays in a store, in the order in which help lists them.
std::vector<CodecKind> PublishedCodecs();

/// The levels of a codec are [1, highest]. A codec with highest = 0 has no levels and ignores them.
struct CodecLevels {
  int highest = 0;
  int usual = 1;  ///< the default
};
CodecLevels LevelsOf(CodecKind codec);

/// A codec and its parameters.
struct Codec {
  CodecKind kind = CodecKind::kRaw;

  /// Compression level; zstd [1, 19], Blosc [1, 9], ignored by raw and nonzero.
  int level = 1;

  bool has_level() const { return kind != CodecKind::kRaw && kind != CodecKind::kNonzero; }

  /// Size of an element in bytes, for Blosc's shuffle.
  std::size_t element_bytes = 4;
};

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
