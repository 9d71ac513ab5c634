#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cuda/simulator.h"
#include "rhizome/cuda/launch.h"

// Tools that the cases of kernels share: comparing, and launches of any small shape.

namespace rhizome::simulator {

using cuda::Mem;
using Random = std::mt19937_64;

/// Returns what the machine found, and that `name` differs if it does.
inline std::string Wrong(const Machine& machine, bool equal, const std::string& name) {
  std::string wrong = machine.Describe();
  if (!equal) wrong += name + " differs from the processor's\n";
  return wrong;
}

/// Compares bits. NaNs count as equal: their payload is the processor's own affair.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
                  (x != x && y != y);
         });
}

/// Small launches, so that a schedule takes a millisecond; most are too small for their work.
inline cuda::Geometry SmallGeometry(Random& random) {
  return {32U << random() % 3, 1 + random() % 6};
}

template <typename T>
Mem<const T> Const(const Mem<T>& mem) {
  return mem;
}

}  // namespace rhizome::simulator
