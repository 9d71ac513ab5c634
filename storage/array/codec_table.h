#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rhizome/storage/codec.h"
#include "rhizome/storage/zarr_json.h"

namespace rhizome::inline internal {

/// All that the engine knows of a codec: a row of the table in codec.cc.
struct CodecEntry {
  CodecKind kind;
  std::string_view name;  ///< in --codec and in messages
  int highest_level;      ///< levels are [1, highest_level]; 0: it has none, and `level` is ignored
  int usual_level;        ///< where --codec gives none
  bool published;         ///< may arrays of a store be in it, or those of a job alone?

  /// Its place in the list `codecs` of a zarr.json, between `bytes` and `crc32c`: the name that
  /// Zarr or numcodecs give it (raw has none), a pointer to its level in its object, and its
  /// configuration. The configuration is also how it is known again: of several entries with one
  /// name, an array is in the one whose configuration, at the level that is stated, is equal.
  std::string_view zarr_name;
  const char* zarr_level;
  ZarrJson (*zarr_configuration)(const Codec& codec);

  /// The most bytes of a frame, without its CRC-32C.
  std::uint64_t (*max_frame_bytes)(std::uint64_t raw_bytes);
  /// Errors: kInvalidArgument, chunks that it cannot compress at any level. Null: there are none.
  Status (*check)(const Codec& codec, std::size_t raw_bytes);
  /// As EncodeChunkInto, without the CRC-32C: a frame of `raw`, which is not empty, into `out`, of
  /// at least max_frame_bytes. Null for raw, which has no frames.
  Result<std::size_t> (*compress)(const Codec& codec, std::span<const std::byte> raw,
                                  std::span<std::byte> out);
  /// The inverse. out.size() is known from the array's shape, and what a frame's header says is
  /// compared with it before anything is decoded. Never writes outside `out`, whatever the bytes
  /// are. Errors: kCorruption.
  Status (*decompress)(const Codec& codec, std::span<const std::byte> frame,
                       std::span<std::byte> out);
};

/// Every codec, in the order in which help lists them.
std::span<const CodecEntry> AllCodecs();

/// Null: there is none of this number.
const CodecEntry* FindCodec(CodecKind kind);

/// Errors: kInvalidArgument, a level that the codec does not have.
Status CheckCodecLevel(const CodecEntry& entry, int level);

}  // namespace rhizome::inline internal
