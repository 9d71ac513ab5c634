#include <cstdint>
#include <numeric>
#include <vector>

#include "index/partition/partition_balance.h"
#include "index/partition/partitioner.h"
#include "index/partition/streaming_partitioner.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {

PartitionMetrics internal::MetricsOf(const ReplicaSets& replicas,
                                     const std::vector<std::uint64_t>& edges,
                                     const std::vector<std::uint64_t>& vertices) {
  std::uint64_t present = 0;
  std::uint64_t interior = 0;
  std::uint64_t total = 0;
  for (std::uint64_t v = 0; v < replicas.vertex_count(); ++v) {
    const std::uint32_t size = replicas.Size(v);
    present += size != 0;
    interior += size == 1;
    total += size;
  }
  RHIZOME_DCHECK(total == std::accumulate(vertices.begin(), vertices.end(), std::uint64_t{0}));
  if (present == 0) return {1, 1, 1, 1, 1, 1};
  return {.replication_factor = static_cast<double>(total) / static_cast<double>(present),
          .vertex_balance = Balance(vertices),
          .edge_balance = Balance(edges),
          .interior_share = static_cast<double>(interior) / static_cast<double>(present),
          .vertex_max_over_min = MaxOverMin(vertices),
          .edge_max_over_min = MaxOverMin(edges)};
}

Result<PartitionMetrics> MeasurePartition(const PartitionInput& input,
                                          std::span<const PartitionId> partition_of_edge,
                                          std::uint32_t partitions) try {
  RHIZOME_RETURN_IF_ERROR(input.CheckPartitions(partition_of_edge, partitions));
  ReplicaSets replicas(input.vertex_count(), partitions);
  std::vector<std::uint64_t> edges(partitions);
  std::vector<std::uint64_t> vertices(partitions);
  RHIZOME_RETURN_IF_ERROR(input.ForEach([&](std::uint64_t e, std::uint64_t src, std::uint64_t dst) {
    const PartitionId p = partition_of_edge[e];
    ++edges[p];
    for (const std::uint64_t vertex : {src, dst}) {
      if (replicas.Add(vertex, p)) ++vertices[p];
    }
  }));
  return MetricsOf(replicas, edges, vertices);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
