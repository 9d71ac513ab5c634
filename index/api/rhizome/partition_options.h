#pragma once

#include <cstdint>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// The algorithms that divide edges; see PartitionEdges and StreamingPartitioner.
enum class PartitionerKind : std::uint8_t {
  kRefined,
  kAdaDne,
  kDne,
  kHash2d,
  kDbh,
  kHdrf,
  kRandom,
  kRange,
};

/// Options of PartitionEdges and StreamingPartitioner.
struct PartitionOptions {
  PartitionerKind kind = PartitionerKind::kRefined;

  /// Range [1, kMaxPartitions].
  std::uint32_t partitions = 1;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  /// kRefined, kDne, kHdrf: hard cap on a partition's edges, as a multiple of the mean. At least 1.
  /// The cap is rounded up so that all edges fit, which matters only for partitions of a few edges.
  double max_edge_balance = 1.05;

  /// kRefined: bound on a partition's vertices, as a multiple of the mean. At least 1. It is
  /// enforced at any cost in replicas, unless the graph has so few edges that even random
  /// assignment leaves some partition above it. In that case the result is the best balance found,
  /// so that tiny graphs can be partitioned.
  double max_vertex_balance = 1.3;

  /// kHdrf: weight of balance against replicas. Finite, at least 0. Above 1 it also spreads edges
  /// whose order keeps neighbours together.
  double hdrf_lambda = 1.1;
};

}  // namespace rhizome
