#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/status.h"

namespace rhizome::inline internal {

/// Elements of four bytes of which many are zero, as rectified activations are: a bit for each, in
/// little-endian uint64 words, element i in bit i mod 64 of word i / 64 and unused bits zero; then
/// the elements whose bits are not all zero, in order. Any bits come back as they were, negative
/// zeros and NaNs too. As fast as copying where the processor has AVX-512.

/// The most bytes that `raw_bytes` become.
constexpr std::uint64_t MaxNonzeroBytes(std::uint64_t raw_bytes) {
  return raw_bytes + (raw_bytes / 4 + 63) / 64 * 8;
}

/// Packs whole elements into `out`, of MaxNonzeroBytes at least. Returns how many were written.
std::size_t PackNonzero(std::span<const std::byte> raw, std::span<std::byte> out);

/// The inverse. Errors: kCorruption, a length that is not what the bits say. Never writes outside
/// `out` nor reads outside `frame`.
Status UnpackNonzero(std::span<const std::byte> frame, std::span<std::byte> out);

}  // namespace rhizome::inline internal
