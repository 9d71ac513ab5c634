#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// An order in which to visit the partitions of a graph so that consecutive ones share many
/// vertices: each partition is followed by the unvisited one with which it shares the most.
/// Depends only on the partitions.
/// Threads: const.
class PartitionTour {
 public:
  /// Errors: kInvalidArgument, a partition is not loaded.
  static Result<PartitionTour> Of(const GraphSnapshot& graph);

  /// As above, with the number of vertices that each two of `partitions` partitions share, shape
  /// [partitions, partitions].
  PartitionTour(std::span<const std::uint64_t> shared, std::uint32_t partitions);

  /// Returns the tour: a permutation of the partitions, beginning with partition 0.
  std::span<const std::uint32_t> order() const { return order_; }

  /// Returns the tour of an epoch, which begins somewhere else in every second epoch. The epoch
  /// after it runs in reverse, so that it begins with what the cache holds.
  std::vector<std::uint32_t> InEpoch(std::uint64_t seed, std::uint64_t epoch) const;

 private:
  std::vector<std::uint32_t> order_;
};

/// Returns how many vertices each two partitions share, shape [partitions, partitions].
/// Errors: kInvalidArgument, a partition is not loaded.
Result<std::vector<std::uint64_t>> CountSharedVertices(const GraphSnapshot& graph);

}  // namespace internal
}  // namespace rhizome
