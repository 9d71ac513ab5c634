#pragma once

#include <cstddef>
#include <span>

#include "storage/array/codec.h"

namespace rhizome {
inline namespace internal {

/// Decodes a single frame, possibly written by another program. The decoded size is out.size(),
/// which follows from the array's shape; the frame's header is compared with it before anything is
/// decoded. Never writes outside `out`. Errors: kCorruption.
Status DecodeZstdFrame(std::span<const std::byte> frame, std::span<std::byte> out);

/// As above, for Blosc. `codec` is kBloscLz4 or kBloscZstd and must match the frame.
Status DecodeBloscFrame(CodecKind codec, std::span<const std::byte> frame,
                        std::span<std::byte> out);

}  // namespace internal
}  // namespace rhizome
