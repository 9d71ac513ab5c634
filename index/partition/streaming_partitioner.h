#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/index/partitioner.h"
#include "rhizome/index/replica_sets.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Metrics from the replica sets and the counts of each partition. O(vertices).
PartitionMetrics MetricsOf(const ReplicaSets& replicas, const std::vector<std::uint64_t>& edges,
                           const std::vector<std::uint64_t>& vertices);

/// Divides edges that pass by once, for graphs whose edges do not fit in memory: an edge gets its
/// partition from what was seen before it, for good. Memory: EstimateBytes, which does not depend
/// on the number of edges. What is needed afterwards (metrics, owners) needs no second pass.
///
/// Kinds (PartitionEdges uses the same code):
///   kHdrf    Petroni et al., CIKM 2015: the partition with the highest score of replicas already
///            there (the rarer vertex counts more; degrees are those seen so far) plus hdrf_lambda
///            times how empty it is; partitions at the cap on edges are left out.
///   kDbh     Xie et al., NIPS 2014: the end with the lower degree is hashed.
///   kRange   with its source; sources are cut into ranges of ids with about equal edges.
///   kHash2d  grid of rows x columns = partitions, as square as the divisors allow: the source's
///            hash gives the row, the destination's the column, so that a vertex is in at most
///            rows + columns - 1 partitions.
///   kRandom  by hash of the edge's position.
/// kDbh and kRange need degrees: where needs_degrees(), pass all edges to CountDegrees first.
///
/// Threads: one at a time. The result depends on kind, edges, their order, and the seed alone.
class StreamingPartitioner {
 public:
  static bool Supports(PartitionerKind kind);

  /// For `edge_count` edges between vertices of [0, vertex_count). `options.kind` says which.
  /// Errors: kInvalidArgument, an option out of range or a kind that needs all edges in memory.
  static Result<std::unique_ptr<StreamingPartitioner>> Create(std::uint64_t vertex_count,
                                                              std::uint64_t edge_count,
                                                              const PartitionOptions& options);

  /// What an instance holds at most, in bytes.
  static std::uint64_t EstimateBytes(PartitionerKind kind, std::uint64_t vertex_count,
                                     std::uint32_t partitions);

  virtual ~StreamingPartitioner() = default;
  StreamingPartitioner(const StreamingPartitioner&) = delete;
  StreamingPartitioner& operator=(const StreamingPartitioner&) = delete;

  /// The first pass, where it is needed: every edge once, in any order, before any Assign.
  bool needs_degrees() const { return needs_degrees_; }
  virtual void CountDegrees(VertexId src, VertexId dst);

  /// The partition of the next edge. Vertices must be in range (checked by the caller). Beyond
  /// edge_count edges, the cap of kHdrf no longer holds.
  PartitionId Assign(VertexId src, VertexId dst);

  std::uint64_t memory_bytes() const {
    return replicas_.memory_bytes() + OwnBytes() + vote_bytes();
  }
  const ReplicaSets& replicas() const { return replicas_; }
  const std::vector<std::uint64_t>& edges_of_partition() const { return edges_; }
  const std::vector<std::uint64_t>& vertices_of_partition() const { return vertices_; }

  /// Of the edges assigned so far. O(vertices).
  PartitionMetrics Metrics() const;

  /// As ChooseOwners (partitioner.h), but "the one with most edges" is known only where a partition
  /// holds more than half of a vertex's edges (a majority vote of 4 bytes a vertex finds it, and
  /// may find a smaller one). O(vertices x replicas); 2 bytes a vertex.
  std::vector<PartitionId> ChooseOwners() const;

 protected:
  StreamingPartitioner(std::uint64_t vertex_count, std::uint32_t partitions, bool needs_degrees);

  /// The partition of the edge that stands at `position` of the stream.
  virtual PartitionId Choose(std::uint64_t position, std::uint64_t src, std::uint64_t dst) = 0;
  /// What a kind holds besides replicas and votes.
  virtual std::uint64_t OwnBytes() const = 0;

  std::uint32_t partitions() const { return static_cast<std::uint32_t>(edges_.size()); }

 private:
  // Boyer and Moore's vote: if a partition holds more than half of the edges, it is `leader`.
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

/// The streaming kinds over edges in memory. `input` and `options` are valid.
Result<std::vector<PartitionId>> PartitionStream(const PartitionInput& input,
                                                 const PartitionOptions& options,
                                                 const JobControl& control);

}  // namespace rhizome::inline internal
