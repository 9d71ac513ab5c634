#pragma once

#include <algorithm>
#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Returns the bytes that remain of a limit; 0 if more than the limit is in use.
constexpr std::uint64_t BytesLeft(std::uint64_t limit_bytes, std::uint64_t taken_bytes) {
  return limit_bytes - std::min(limit_bytes, taken_bytes);
}

}  // namespace internal
}  // namespace rhizome
