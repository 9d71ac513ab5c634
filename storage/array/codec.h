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

/// How the bytes of a chunk are compressed. Stored on disk: never renumber, only append.
/// blosclz is neither written nor read: its decoder has an open heap overflow (c-blosc #405).
enum class CodecKind : std::uint8_t {
  kInvalid = 0,
  kRaw = 1,
  kZstd = 2,
  kBloscLz4 = 3,
  kBloscZstd = 4,
  kNonzero = 5,  ///< of jobs' own arrays: Zarr has no such codec, so that none is published in it
};

/// "raw", "zstd", "blosc-lz4", "blosc-zstd", "nonzero".
std::string_view CodecName(CodecKind codec);

/// Of those that an array can be published in.
std::optional<CodecKind> ParseCodec(std::string_view name);

struct Codec {
  CodecKind kind = CodecKind::kRaw;

  /// Compression level; zstd [1, 19], Blosc [1, 9], ignored by raw and nonzero.
  int level = 1;

  bool has_level() const { return kind != CodecKind::kRaw && kind != CodecKind::kNonzero; }

  /// Element size that Blosc shuffles by.
  std::size_t element_bytes = 4;
};

/// Compresses `raw`, then appends its CRC-32C (Zarr's crc32c codec) unless the codec is raw.
/// Errors: kInvalidArgument, level out of range, `raw` above kMaxChunkBytes, or elements of another
/// width than four bytes for nonzero.
Result<std::vector<std::byte>> EncodeChunk(const Codec& codec, std::span<const std::byte> raw);

/// The same into `out`, of at least MaxEncodedBytes(codec, raw.size()) bytes. Returns how many were
/// written. Errors: as above; kInvalidArgument, `out` is too small.
Result<std::size_t> EncodeChunkInto(const Codec& codec, std::span<const std::byte> raw,
                                    std::span<std::byte> out);

/// The inverse. The decoded size is out.size() and known from the array's shape, never taken from
/// the frame: checksum, codec and sizes in the frame's header are checked before anything is
/// decoded. Errors: kCorruption. Never writes outside `out`, whatever the bytes are.
Status DecodeChunk(const Codec& codec, std::span<const std::byte> encoded,
                   std::span<std::byte> out);

/// The most bytes that an encoded chunk of `raw_bytes` can have; a longer file is refused unread.
std::uint64_t MaxEncodedBytes(const Codec& codec, std::uint64_t raw_bytes);

}  // namespace rhizome
