#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A codec for elements of four bytes that are often zero, such as activations after ReLU. A frame
/// starts with a bit mask of one bit per element, in little-endian uint64 words (element i is bit i
/// mod 64 of word i / 64; unused bits are zero). The non-zero elements follow in order. Zero means
/// that all bits are zero, so that negative zeros and NaNs are preserved exactly.

/// Returns an upper bound on the size of a frame for `raw_bytes` of input.
constexpr std::uint64_t MaxNonzeroBytes(std::uint64_t raw_bytes) {
  return raw_bytes + (raw_bytes / 4 + 63) / 64 * 8;
}

/// Packs `raw`, which must consist of whole elements, into `out`, which must have at least
/// MaxNonzeroBytes(raw.size()) bytes. Returns the number of bytes written.
std::size_t PackNonzero(std::span<const std::byte> raw, std::span<std::byte> out);

/// Unpacks a frame of PackNonzero into `out`, filling it. Errors: kCorruption, `out` does not
/// consist of whole elements, the frame's length does not match its bit mask, or unused bits are
/// set. Never writes outside `out` or reads outside `frame`.
Status UnpackNonzero(std::span<const std::byte> frame, std::span<std::byte> out);

}  // namespace internal
}  // namespace rhizome
