#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace rhizome::inline internal {

/// Returns how many ranks (as threads) or worker processes one job may have on this machine: as
/// many as it has processors, and at least 64. More of them would only take its memory.
inline std::uint32_t MaxPartsOfJob() {
  constexpr std::uint32_t kAtLeast = 64;
  return std::max<std::uint32_t>(std::thread::hardware_concurrency(), kAtLeast);
}

}  // namespace rhizome::inline internal
