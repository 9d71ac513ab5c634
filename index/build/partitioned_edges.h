#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/partitioner.h"
#include "rhizome/index/vertex_order.h"

namespace rhizome::inline internal {

/// What dividing the edges came to.
struct EdgeDivision {
  PartitionerKind kind = PartitionerKind::kRefined;  ///< that was used
  PartitionMetrics metrics;
  std::vector<PartitionId> owners;        ///< by vertex
  std::vector<std::uint64_t> out_degree;  ///< by vertex
  std::vector<std::uint64_t> in_degree;
  std::uint64_t edges = 0;              ///< directed ones, as all counts below
  std::uint64_t largest_partition = 0;  ///< edges of it
};

/// One partition's edges, in the order of the input.
struct PartitionEdgeList {
  EdgesOfPartition edges;
  std::vector<EdgeAttribute> attributes;
};

/// The edges of a GraphInput, to be divided and handed out by partition: from memory, or from spill
/// files. Both divide alike where they use the same partitioner.
/// Use: Divide, then Arrange, then PartitionSets, then Take for each partition.
/// Threads: Take from many threads, for different partitions; the rest one at a time.
class PartitionedEdges {
 public:
  /// Takes the edges out of `input`, which must outlive it.
  static std::shared_ptr<PartitionedEdges> Make(GraphInput& input, const PartitionOptions& options,
                                                const JobControl& control);
  virtual ~PartitionedEdges() = default;

  /// What stands beside the ends of the edges, and whether all of them wait in memory. Before
  /// Divide.
  struct Columns {
    bool weighted = false;
    std::size_t attributes = 0;
    bool in_memory = true;
  };
  virtual Columns columns() const = 0;

  /// Errors: those of PartitionEdges; kOutOfMemory, a partition would not fit.
  virtual Result<EdgeDivision> Divide() = 0;

  /// Lets go of what only Divide needed. `order` must outlive this.
  virtual Status Arrange(const VertexOrder& order) = 0;

  /// Which partitions hold edges of each row: bit p of word [row * words + p / 64], as
  /// PartitionContext has it. Once.
  virtual std::vector<std::uint64_t> PartitionSets() = 0;

  /// Hands out a partition's edges, by row. Once.
  virtual Result<PartitionEdgeList> Take(std::uint32_t partition) = 0;
};

}  // namespace rhizome::inline internal
