#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "storage/array/codec.h"
#include "storage/array/zarr_json.h"

namespace rhizome {
inline namespace internal {

/// Everything that the engine knows about a codec: a row of the table in codec.cc.
struct CodecEntry {
  CodecKind kind;
  std::string_view name;  ///< in --codec and in messages
  int highest_level;      ///< levels are [1, highest_level]; 0: no levels, `level` is ignored
  int usual_level;        ///< the default of --codec
  bool published;         ///< whether arrays of a store may use it, or only jobs

  /// Its entry in the list `codecs` of a zarr.json, between `bytes` and `crc32c`: its name in Zarr
  /// or numcodecs (raw has none), the JSON pointer to its level within its object, and its
  /// configuration. The configuration is also used to recognise it: if several rows have the same
  /// name, the codec of an array is the row whose configuration, at the stated level, is equal.
  std::string_view zarr_name;
  const char* zarr_level;
  ZarrJson (*zarr_configuration)(const Codec& codec);

  /// Returns the max size of a frame in bytes, without its CRC-32C.
  std::uint64_t (*max_frame_bytes)(std::uint64_t raw_bytes);
  /// Errors: kInvalidArgument, a chunk that the codec cannot compress at any level. Null: no such
  /// chunks.
  Status (*check)(const Codec& codec, std::size_t raw_bytes);
  /// As EncodeChunkInto, without the CRC-32C: writes a frame of `raw`, which is not empty, into
  /// `out`, of at least max_frame_bytes. Null for raw, which has no frames.
  Result<std::size_t> (*compress)(const Codec& codec, std::span<const std::byte> raw,
                                  std::span<std::byte> out);
  /// The inverse. out.size() is known from the array's shape; the fields of the frame's header are
  /// compared with it before anything is decoded. Never writes outside `out`, even for malicious
  /// input.
  /// Errors: kCorruption.
  Status (*decompress)(const Codec& codec, std::span<const std::byte> frame,
                       std::span<std::byte> out);
};

/// Returns all codecs, in the order in which help lists them.
std::span<const CodecEntry> AllCodecs();

/// Returns the entry of a codec; nullptr if there is none.
const CodecEntry* FindCodec(CodecKind kind);

/// Errors: kInvalidArgument, a level that the codec does not have.
Status CheckCodecLevel(const CodecEntry& entry, int level);

}  // namespace internal
}  // namespace rhizome
