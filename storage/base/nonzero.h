#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/status.h"

namespace rhizome::inline internal {

/// This codec packs elements of four bytes of which many are zero, as activations after ReLU are. A
/// frame has a bit for each element, in little-endian uint64 words (element i in bit i mod 64 of
/// word i / 64, unused bits zero), then the elements whose bits are not all zero, in order. Every
/// bit pattern comes back as it was, negative zeros and NaNs too.

/// Returns an upper bound on the bytes of a frame of `raw_bytes`.
constexpr std::uint64_t MaxNonzeroBytes(std::uint64_t raw_bytes) {
  return raw_bytes + (raw_bytes / 4 + 63) / 64 * 8;
}

/// Packs `raw`, whole elements, into `out`, which has at least MaxNonzeroBytes(raw.size()) bytes.
/// Returns the bytes written.
std::size_t PackNonzero(std::span<const std::byte> raw, std::span<std::byte> out);

/// Unpacks a frame of PackNonzero and fills `out`. Errors: kCorruption, `out` is not of whole
/// elements, the frame's length does not agree with its bits, or unused bits are set. Never writes
/// outside `out` nor reads outside `frame`.
Status UnpackNonzero(std::span<const std::byte> frame, std::span<std::byte> out);

}  // namespace rhizome::inline internal
