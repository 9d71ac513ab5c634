#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "index/partition/partition_input.h"
#include "index/partition/partitioner.h"
#include "index/partition/replica_sets.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/metrics.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
struct DividedEdges;
struct PartitionMetrics;
}  // namespace rhizome

namespace rhizome {
inline namespace internal {

/// Computes the metrics from the replica sets and the counts of each partition. O(vertices).
PartitionMetrics MetricsOf(const ReplicaSets& replicas, const std::vector<std::uint64_t>& edges,
                           const std::vector<std::uint64_t>& vertices);

/// Partitions a stream of edges, for graphs whose edges do not fit in memory: the partition of an
/// edge depends only on the edges before it, and is final. Memory is EstimateBytes, independent of
/// the number of edges. Metrics and owners need no second pass.
///
/// Kinds (PartitionEdges uses the same code):
///   kHdrf    Petroni et al., CIKM 2015: chooses the partition with the highest score, which is the
///            score of the replicas that the partition already has (the end of lower degree counts
///            more; degrees are counted so far) plus hdrf_lambda times how empty it is. Partitions
///            at the cap on edges are excluded.
///   kDbh     Xie et al., NIPS 2014: hashes the end with the lower degree.
///   kRange   follows the source; sources are cut into ranges of ids with about equal edges.
///   kHash2d  uses a grid of rows x columns = partitions, as square as the divisors allow: the
///            source's hash selects the row, the destination's the column, so that a vertex is in
///            at most rows + columns - 1 partitions.
///   kRandom  hashes the edge's position.
/// kDbh and kRange need degrees: if needs_degrees(), pass all edges to CountDegrees first.
///
/// Threads: one at a time. The result depends only on the kind, the edges, their order, the seed
/// and the options.
class StreamingPartitioner {
 public:
  static bool Supports(PartitionerKind kind);

  /// Creates a partitioner of `options.kind` for `edge_count` edges between vertices of [0,
  /// vertex_count).
  /// Errors: kInvalidArgument, an option out of range or a kind that needs all edges in memory.
  static Result<std::unique_ptr<StreamingPartitioner>> Create(std::uint64_t vertex_count,
                                                              std::uint64_t edge_count,
                                                              const PartitionOptions& options);

  /// Returns the maximum number of bytes that an instance holds.
  static std::uint64_t EstimateBytes(PartitionerKind kind, std::uint64_t vertex_count,
                                     std::uint32_t partitions);

  virtual ~StreamingPartitioner() = default;
  StreamingPartitioner(const StreamingPartitioner&) = delete;
  StreamingPartitioner& operator=(const StreamingPartitioner&) = delete;

  /// If needs_degrees(), the caller passes every edge to CountDegrees once, in any order, before
  /// the first Assign.
  bool needs_degrees() const { return needs_degrees_; }
  virtual void CountDegrees(VertexId src, VertexId dst);

  /// Returns the partition of the next edge. The caller must check that vertices are in range.
  /// After more than edge_count edges the cap of kHdrf no longer holds.
  PartitionId Assign(VertexId src, VertexId dst);

  std::uint64_t memory_bytes() const {
    return replicas_.memory_bytes() + OwnBytes() + vote_bytes();
  }
  const ReplicaSets& replicas() const { return replicas_; }
  const std::vector<std::uint64_t>& edges_of_partition() const { return edges_; }
  const std::vector<std::uint64_t>& vertices_of_partition() const { return vertices_; }

  /// Returns the metrics of the edges assigned so far. O(vertices).
  PartitionMetrics Metrics() const;

  /// As ChooseOwners of partitioner.h, except that it knows the partition with the most edges only
  /// if that partition holds more than half of a vertex's edges: a majority vote of 4 bytes a
  /// vertex finds it, and may name a smaller one otherwise. O(vertices x replicas) time; 2 bytes a
  /// vertex.
  std::vector<PartitionId> ChooseOwners() const;

 protected:
  StreamingPartitioner(std::uint64_t vertex_count, std::uint32_t partitions, bool needs_degrees);

  /// Chooses the partition of the edge at `position` of the stream.
  virtual PartitionId Choose(std::uint64_t position, std::uint64_t src, std::uint64_t dst) = 0;
  /// Returns the bytes that a kind holds besides replicas and votes.
  virtual std::uint64_t OwnBytes() const = 0;

  std::uint32_t partitions() const { return static_cast<std::uint32_t>(edges_.size()); }

 private:
  // A majority vote after Boyer and Moore: if a partition holds more than half of the edges, it is
  // `leader`.
  struct Vote {
    PartitionId leader = 0;
    std::uint16_t lead = 0;
  };

  struct OwnerView;

  std::uint64_t vote_bytes() const { return votes_.size() * sizeof(Vote); }
  void Record(std::uint64_t vertex, PartitionId p);

  const bool needs_degrees_;
  std::uint64_t position_ = 0;
  ReplicaSets replicas_;
  std::vector<Vote> votes_;              // [vertices]
  std::vector<std::uint64_t> edges_;     // [partitions]
  std::vector<std::uint64_t> vertices_;  // [partitions]
};

/// Runs a streaming kind over all edges of `input`. `input` and `options` must be valid. Leaves
/// `owners` empty: ChooseOwners, which sees all edges, finds better ones than an instance does.
Result<DividedEdges> PartitionStream(const PartitionInput& input, const PartitionOptions& options,
                                     const JobControl& control);

}  // namespace internal
}  // namespace rhizome
