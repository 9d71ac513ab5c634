#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// The compression of a chunk. Stored on disk: never renumber, only append. blosclz is neither
/// written nor read: its decoder has an open heap overflow (c-blosc #405).
enum class CodecKind : std::uint8_t {
  kInvalid = 0,
  kRaw = 1,
  kZstd = 2,
  kBloscLz4 = 3,
  kBloscZstd = 4,
  kNonzero = 5,  ///< for arrays that only a job reads: Zarr has no such codec
};

/// Returns "raw", "zstd", "blosc-lz4", "blosc-zstd" or "nonzero"; "invalid" for others.
std::string_view CodecName(CodecKind codec);

/// The inverse of CodecName for codecs in which an array can be published (not nonzero).
std::optional<CodecKind> ParseCodec(std::string_view name);

/// The codecs in which an array can be published, in the order in which help lists them.
std::vector<CodecKind> PublishedCodecs();

/// The levels of a codec are [1, highest]. A codec with highest = 0 has none and ignores them.
struct CodecLevels {
  int highest = 0;
  int usual = 1;  ///< if a user names none
};
CodecLevels LevelsOf(CodecKind codec);

/// A codec and its parameters.
struct Codec {
  CodecKind kind = CodecKind::kRaw;

  /// Compression level; zstd [1, 19], Blosc [1, 9], ignored by raw and nonzero.
  int level = 1;

  bool has_level() const { return kind != CodecKind::kRaw && kind != CodecKind::kNonzero; }

  /// The element size, in bytes, by which Blosc shuffles.
  std::size_t element_bytes = 4;
};

/// Compresses `raw`, then appends its CRC-32C (Zarr's crc32c codec) unless the codec is raw.
/// Errors: kInvalidArgument, level out of range, `raw` above kMaxChunkBytes, or elements of another
/// width than four bytes for nonzero.
Result<std::vector<std::byte>> EncodeChunk(const Codec& codec, std::span<const std::byte> raw);

/// Does the same into `out`, of at least MaxEncodedBytes(codec, raw.size()) bytes. Returns the
/// bytes written. Errors: as above; kInvalidArgument, `out` is too small.
Result<std::size_t> EncodeChunkInto(const Codec& codec, std::span<const std::byte> raw,
                                    std::span<std::byte> out);

/// Decodes a chunk into `out`. The decoded size is out.size(), which follows from the array's shape
/// and is never taken from the frame: checksum, codec and the sizes in the frame's header are
/// checked before anything is decoded. Never writes outside `out`, whatever the bytes are. Errors:
/// kCorruption.
Status DecodeChunk(const Codec& codec, std::span<const std::byte> encoded,
                   std::span<std::byte> out);

/// Returns the most bytes that an encoded chunk of `raw_bytes` can have. Readers refuse a longer
/// file without reading it.
std::uint64_t MaxEncodedBytes(const Codec& codec, std::uint64_t raw_bytes);

}  // namespace rhizome
