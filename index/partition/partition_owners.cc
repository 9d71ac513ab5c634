#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "index/partition/owner_chooser.h"
#include "index/partition/partition_balance.h"
#include "index/partition/partitioner.h"
#include "index/partition/replica_counts.h"
#include "storage/base/exceptions.h"

namespace rhizome {

namespace {

/// Counts the edges of each vertex in each partition, as the View of an OwnerChooser.
template <typename Index>
class CountedEdges {
 public:
  static Result<CountedEdges> Count(const PartitionInput& input,
                                    std::span<const PartitionId> partition_of_edge,
                                    std::uint32_t partitions) {
    std::vector<Index> degree(static_cast<std::size_t>(input.vertex_count()));
    RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t, std::uint64_t src, std::uint64_t dst) {
      ++degree[src];
      ++degree[dst];
    }));
    Counts counts(input.vertex_count(), partitions, [&](std::size_t v) { return degree[v]; });
    RHIZOME_RETURN_IF_ERROR(
        input.ForEach([&](std::uint64_t e, std::uint64_t src, std::uint64_t dst) {
          counts.Increment(src, partition_of_edge[e]);
          counts.Increment(dst, partition_of_edge[e]);
        }));
    return CountedEdges(std::move(counts));
  }

  template <typename Visit>
  void ForEachPartition(std::uint64_t vertex, Visit&& visit) const {
    counts_.ForEach(vertex, [&](PartitionId p, Index) { visit(p); });
  }

  PartitionId Majority(std::uint64_t vertex) const {
    return ClearMajority<Index>([&](auto&& visit) { counts_.ForEach(vertex, visit); });
  }

 private:
  using Counts = ReplicaCounts<Index>;

  explicit CountedEdges(Counts counts) : counts_(std::move(counts)) {}

  Counts counts_;
};

template <typename Index>
Result<std::vector<PartitionId>> Choose(const PartitionInput& input,
                                        std::span<const PartitionId> partition_of_edge,
                                        std::uint32_t partitions) {
  RHIZOME_ASSIGN_OR_RETURN(auto counts,
                           CountedEdges<Index>::Count(input, partition_of_edge, partitions));
  return OwnerChooser(std::move(counts), input.vertex_count(), partitions).Choose();
}

}  // namespace

Result<std::vector<PartitionId>> ChooseOwners(const PartitionInput& input,
                                              std::span<const PartitionId> partition_of_edge,
                                              std::uint32_t partitions) try {
  RHIZOME_RETURN_IF_ERROR(input.CheckPartitions(partition_of_edge, partitions));
  // Self-loops count twice, so a count is at most twice the number of edges.
  return input.edge_count() < std::numeric_limits<std::uint32_t>::max() / 2
             ? Choose<std::uint32_t>(input, partition_of_edge, partitions)
             : Choose<std::uint64_t>(input, partition_of_edge, partitions);
} catch (...) {
  return Fail(StatusOfException());
}

Result<double> OwnerBalance(std::span<const PartitionId> owners, std::uint32_t partitions) try {
  std::vector<std::uint64_t> rows(partitions);
  for (const PartitionId p : owners) {
    if (p >= partitions)
      return Fail(Status::InvalidArgument(
          fmt::format("there is no partition {} to own a row: there are {}", p, partitions)));
    ++rows[p];
  }
  return Balance(rows);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
