#include "cache/tables/partition_tour.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "index/topology/adjacency.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

void AppendMembers(std::span<const std::uint8_t> set, std::vector<std::uint32_t>& members) {
  members.clear();
  for (std::size_t byte = 0; byte < set.size(); ++byte) {
    for (std::uint32_t bits = set[byte]; bits != 0; bits &= bits - 1)
      members.push_back(static_cast<std::uint32_t>(8 * byte) +
                        static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

}  // namespace

Result<std::vector<std::uint64_t>> CountSharedVertices(const GraphSnapshot& graph) try {
  const std::size_t partitions = graph.partition_count();
  std::vector<std::uint64_t> shared(partitions * partitions);
  std::vector<std::uint32_t> members;
  for (std::uint32_t p = 0; p < partitions; ++p) {
    if (!graph.is_loaded(p))
      return Fail(Status::InvalidArgument(fmt::format("partition {} is not loaded", p)));
    const Adjacency& partition = graph.partition(p);
    // Each vertex is counted by its owner.
    for (LocalId local = 0; local < partition.owned_count(); ++local) {
      AppendMembers(partition.PartitionSet(local), members);
      for (const std::uint32_t a : members)
        for (const std::uint32_t b : members) shared[a * partitions + b] += a == b ? 0 : 1;
    }
  }
  return shared;
} catch (...) {
  return Fail(StatusOfException());
}

Result<PartitionTour> PartitionTour::Of(const GraphSnapshot& graph) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> shared, CountSharedVertices(graph));
  return PartitionTour(shared, graph.partition_count());
}

PartitionTour::PartitionTour(std::span<const std::uint64_t> shared, std::uint32_t partitions) {
  RHIZOME_CHECK(partitions >= 1 && shared.size() == std::size_t{partitions} * partitions);
  std::vector<std::uint32_t> left(partitions);
  std::iota(left.begin(), left.end(), 0);
  std::uint32_t at = 0;
  while (true) {
    order_.push_back(at);
    left.erase(std::find(left.begin(), left.end(), at));
    if (left.empty()) return;
    const auto row = shared.subspan(std::size_t{at} * partitions, partitions);
    // The first of equal ones: `left` is ascending.
    at = *std::max_element(left.begin(), left.end(),
                           [&](std::uint32_t a, std::uint32_t b) { return row[a] < row[b]; });
  }
}

std::vector<std::uint32_t> PartitionTour::InEpoch(std::uint64_t seed, std::uint64_t epoch) const {
  std::vector<std::uint32_t> tour(order_);
  const std::uint64_t first = ScaleTo(SplitMix64(seed, epoch / 2), tour.size());
  std::rotate(tour.begin(), tour.begin() + static_cast<std::ptrdiff_t>(first), tour.end());
  if (epoch % 2 == 1) std::reverse(tour.begin(), tour.end());
  return tour;
}

}  // namespace internal
}  // namespace rhizome
