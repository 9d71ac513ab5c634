#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cuda/launch.h"
#include "cuda/simulator.h"

// Helpers for the test cases of kernels: comparison, and launches of small random shapes.

namespace rhizome::simulator {

using cuda::Mem;
using Random = std::mt19937_64;

/// Returns what the machine found and, unless `equal`, that `name` differs.
inline std::string Wrong(const Machine& machine, bool equal, const std::string& name) {
  std::string wrong = machine.Describe();
  if (!equal) wrong += name + " differs from the processor's\n";
  return wrong;
}

/// Compares bits. All NaNs count as equal, because their payload depends on the processor.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
                  (x != x && y != y);
         });
}

/// Returns a small launch, so that a schedule takes a millisecond. Most have fewer threads than
/// work.
inline cuda::Geometry SmallGeometry(Random& random) {
  return {32U << random() % 3, 1 + random() % 6};
}

template <typename T>
Mem<const T> Const(const Mem<T>& mem) {
  return mem;
}

}  // namespace rhizome::simulator
