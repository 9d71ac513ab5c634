#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rhizome/storage/export.h"

namespace rhizome::inline internal {

/// The most edges that a partition may have: `balance` times the mean, but never so few that the
/// partitions together could not hold all.
inline std::uint64_t EdgeCap(std::uint64_t edges, std::uint32_t partitions, double balance) {
  const double mean = static_cast<double>(edges) / partitions;
  const std::uint64_t least = edges / partitions + (edges % partitions != 0);
  // Beyond what a double counts exactly, or a balance that means "no cap": all edges.
  const double most = std::min(std::floor(mean * balance), static_cast<double>(edges));
  return std::max(least, static_cast<std::uint64_t>(most));
}

/// Largest over mean; 1 where there is nothing to divide.
inline double Balance(const std::vector<std::uint64_t>& load) {
  std::uint64_t sum = 0;
  for (const std::uint64_t x : load) sum += x;
  if (sum == 0) return 1;
  const std::uint64_t most = *std::max_element(load.begin(), load.end());
  return static_cast<double>(most) * static_cast<double>(load.size()) / static_cast<double>(sum);
}

/// Largest over smallest; 1 where there is nothing to divide, infinite where something has nothing.
inline double MaxOverMin(const std::vector<std::uint64_t>& load) {
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  if (least == load.end() || *most == 0) return 1;
  if (*least == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*most) / static_cast<double>(*least);
}

}  // namespace rhizome::inline internal
