#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace rhizome {
inline namespace internal {

/// Returns the max number of ranks (as threads) or worker processes of one job on this machine: the
/// number of its processors, but at least 64. More would only use memory.
inline std::uint32_t MaxPartsOfJob() {
  constexpr std::uint32_t kAtLeast = 64;
  return std::max<std::uint32_t>(std::thread::hardware_concurrency(), kAtLeast);
}

}  // namespace internal
}  // namespace rhizome
