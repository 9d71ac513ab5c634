#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/partition/partitioner.h"
#include "index/partition/replica_sets.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"

namespace rhizome {
inline namespace internal {

/// The result of partitioning the edges.
struct EdgeDivision {
  PartitionerKind kind = PartitionerKind::kRefined;  ///< the partitioner that was used
  PartitionMetrics metrics;
  std::vector<PartitionId> owners;  ///< by vertex
  Degrees out_degree;               ///< by vertex
  Degrees in_degree;
  std::uint64_t edges = 0;              ///< number of directed edges, like all counts below
  std::uint64_t largest_partition = 0;  ///< maximum number of edges of a partition

  /// Bound on the number of vertices that a partition owns or has an edge of.
  std::uint64_t most_vertices = 0;
};

/// Edges of one partition, in input order.
struct PartitionEdgeList {
  EdgesOfPartition edges;
  std::vector<EdgeAttribute> attributes;
};

/// The edges of a GraphInput, partitioned and returned by partition. They come from memory or from
/// spill files; both give the same result if they use the same partitioner. Call Divide, then
/// ForgetInput, Arrange, PartitionSets, then Take for each partition.
/// Threads: Take may be called from many threads, for different partitions; all other functions
/// from one at a time.
class PartitionedEdges {
 public:
  /// Takes over the edges of `input`, which must outlive the result.
  static std::shared_ptr<PartitionedEdges> Make(GraphInput& input, const PartitionOptions& options,
                                                const JobControl& control);
  virtual ~PartitionedEdges() = default;

  /// The columns besides the ends of the edges, and whether all edges are in memory. Valid before
  /// Divide.
  struct Columns {
    bool weighted = false;
    std::size_t attributes = 0;
    bool in_memory = true;
  };
  virtual Columns columns() const = 0;

  /// Returns the edges that Divide partitions, as borrowed columns. Valid until ForgetInput.
  /// Errors: kUnsupported, the edges were partitioned before.
  virtual Result<PartitionInput> Input() const {
    return Fail(Status::Unsupported("edges that are divided already are not scanned as a whole"));
  }

  /// Frees the data that only Divide and Input need.
  virtual void ForgetInput() {}

  /// Partitions the edges.
  /// Errors: as PartitionEdges; kOutOfMemory, a partition would not fit.
  virtual Result<EdgeDivision> Divide() = 0;

  /// Frees the data that only Divide needs. `order` must outlive this object.
  virtual Status Arrange(const VertexOrder& order) = 0;

  /// Returns the partitions that hold edges of each row, as PartitionContext::partition_set.
  /// Callable once, after Arrange.
  virtual Result<std::vector<std::uint8_t>> PartitionSets() = 0;

  /// Returns a partition's edges, by row. Callable once for each partition.
  virtual Result<PartitionEdgeList> Take(std::uint32_t partition) = 0;
};

/// Returns the largest number of vertices of a partition: those with an edge there, and vertices
/// without edges that it owns.
std::uint64_t MostVertices(const ReplicaSets& sets, std::span<const PartitionId> owners,
                           std::uint32_t partitions);

/// Copies the set of a vertex to the bytes of a PartitionContext::partition_set.
void CopySet(const ReplicaSets& sets, std::uint64_t vertex, std::span<std::uint8_t> out);

}  // namespace internal
}  // namespace rhizome
