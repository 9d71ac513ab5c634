#pragma once

#include <algorithm>
#include <cstdint>

#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// What a limit leaves beside what is taken already; 0 where that is more.
constexpr std::uint64_t BytesLeft(std::uint64_t limit_bytes, std::uint64_t taken_bytes) {
  return limit_bytes - std::min(limit_bytes, taken_bytes);
}

}  // namespace internal
}  // namespace rhizome
