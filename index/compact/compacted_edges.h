#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/generation/partitioned_edges.h"
#include "index/partition/replica_sets.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Selects the edges to drop from the next generation: edges whose time is below `before`.
struct ExpiredEdges {
  std::string attribute;  ///< an int64 edge attribute
  std::int64_t before = 0;
};

/// The edges of a graph with its delta, for the next generation. Each edge of the generation
/// remains in its partition; each new edge goes to a partition that holds its ends and is below the
/// cap (the rule of HDRF over the existing replicas). The balance may degrade with many updates;
/// repartitioning restores it.
///
/// Memory: the replica sets, and in Take the lists of the partition, which are loaded if the
/// generation's lists are on disk.
/// Threads: as PartitionedEdges.
class CompactedEdges final : public PartitionedEdges {
 public:
  /// `view` is null if nothing was written. `change` adds columns to the edges.
  CompactedEdges(std::shared_ptr<const GraphParts> parts, std::shared_ptr<const Delta> delta,
                 std::shared_ptr<const DeltaView> view, std::optional<ExpiredEdges> expired,
                 const SchemaChange& change, const JobControl& control);

  Columns columns() const override;
  Result<EdgeDivision> Divide() override;
  Status Arrange(const VertexOrder& order) override;
  Result<std::vector<std::uint8_t>> PartitionSets() override;
  Result<PartitionEdgeList> Take(std::uint32_t partition) override;

  /// Return all edges without partitions, each pair of an undirected graph once, for
  /// repartitioning: TakeAll in memory; Spill, with their columns, in spilled.ends. The caller sets
  /// `space` and `memory_bytes` of `spilled`.
  Result<EdgeList> TakeAll() const;
  Status Spill(SpilledGraph& spilled) const;

 private:
  struct Edge {
    VertexId src = 0;
    VertexId dst = 0;
    std::uint64_t position = 0;  // position of the edge in the view's columns
  };
  struct LocalDegrees {  // by local id
    std::vector<std::uint64_t> out;
    std::vector<std::uint64_t> in;
  };
  class Attributes;

  std::vector<EdgeAttribute> EmptyAttributes() const;
  template <typename Added>
  Status AppendAll(EdgeList& all, Added&& added) const;
  Direction walked() const;
  Result<const Adjacency*> PartitionOf(std::uint32_t p, std::optional<Adjacency>& loaded) const;
  template <typename Visit>
  Status ForEachBaseEdge(std::uint32_t p, const Adjacency& partition, Visit&& visit) const;
  template <typename Visit>
  void ForEachNewEdge(Visit&& visit) const;
  std::uint64_t LeftOf(std::uint32_t p, const Adjacency& partition, LocalId local,
                       Direction direction) const;
  Status CountLeft(std::uint32_t p, const Adjacency& partition, LocalDegrees& degrees) const;
  Status CountBase(std::uint32_t p, EdgeDivision& division);
  PartitionId HomeOf(VertexId vertex) const;
  void DivideNew(EdgeDivision& division);
  PartitionId Choose(VertexId src, VertexId dst, std::uint64_t cap) const;
  void Count(EdgeDivision& division, VertexId src, VertexId dst, PartitionId p);
  bool NewExpired(std::uint64_t position) const;
  bool BaseExpired(const Attributes& attributes, std::uint64_t position) const;
  bool IsExpired(std::int64_t value) const;
  void AppendNew(Direction direction, std::uint64_t position,
                 std::vector<EdgeAttribute>& columns) const;
  void AppendAdded(std::vector<EdgeAttribute>& columns) const;
  bool weighted() const { return parts_->info().weighted || change_.weighted; }
  float NewWeight(Direction direction, std::uint64_t position) const;

  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const std::shared_ptr<const DeltaView> view_;
  std::optional<std::size_t> expired_attribute_;  // an index into the graph's edge attributes
  std::int64_t expired_before_ = 0;
  const SchemaChange change_;
  std::optional<std::int64_t> expired_null_ = {};
  const JobControl& control_;
  const std::uint32_t partitions_;
  const VertexOrder* order_ = nullptr;
  ReplicaSets replicas_;                      // until PartitionSets
  Mutex degrees_mutex_;                       // see Degrees::AddShared
  std::vector<std::uint64_t> edges_;          // directed, by partition
  std::vector<std::uint64_t> vertices_;       // by partition
  std::vector<std::vector<Edge>> new_edges_;  // by partition
};

}  // namespace internal
}  // namespace rhizome
