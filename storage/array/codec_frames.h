#pragma once

#include <cstddef>
#include <span>

#include "rhizome/storage/codec.h"

namespace rhizome::inline internal {

/// Decoders of single frames, for chunks that other programs wrote too. The decoded size is
/// out.size() and known from the array's shape; everything that a frame's header says is compared
/// with it before anything is decoded. Errors: kCorruption. Never write outside `out`.
Status DecodeZstdFrame(std::span<const std::byte> frame, std::span<std::byte> out);

/// `codec` is kBloscLz4 or kBloscZstd, and must be the one that the frame names.
Status DecodeBloscFrame(CodecKind codec, std::span<const std::byte> frame,
                        std::span<std::byte> out);

}  // namespace rhizome::inline internal
