#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace rhizome {
inline namespace internal {

/// Returns the maximum number of edges of a partition: `balance` times the mean, but at least
/// enough for the partitions to hold all edges.
inline std::uint64_t EdgeCap(std::uint64_t edges, std::uint32_t partitions, double balance) {
  const double mean = static_cast<double>(edges) / partitions;
  const std::uint64_t least = edges / partitions + (edges % partitions != 0);
  // The number of all edges is the limit if the balance means "no cap" or the double is not exact.
  const double most = std::min(std::floor(mean * balance), static_cast<double>(edges));
  return std::max(least, static_cast<std::uint64_t>(most));
}

/// Returns the largest load over the mean; 1 if all loads are 0.
inline double Balance(const std::vector<std::uint64_t>& load) {
  std::uint64_t sum = 0;
  for (const std::uint64_t x : load) sum += x;
  if (sum == 0) return 1;
  const std::uint64_t most = *std::max_element(load.begin(), load.end());
  return static_cast<double>(most) * static_cast<double>(load.size()) / static_cast<double>(sum);
}

/// Returns the largest load over the smallest; 1 if all loads are 0, infinite if only some are.
inline double MaxOverMin(const std::vector<std::uint64_t>& load) {
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  if (least == load.end() || *most == 0) return 1;
  if (*least == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*most) / static_cast<double>(*least);
}

}  // namespace internal
}  // namespace rhizome
