#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rhizome/index/partitioner.h"
#include "rhizome/index/reorder.h"
#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// An edge, valid within one generation.
struct EdgeId {
  PartitionId partition = 0;
  std::uint64_t position = 0;
  friend bool operator==(const EdgeId&, const EdgeId&) = default;
};

/// One entry of a neighbour list.
struct Neighbor {
  VertexId vertex = 0;
  TypeId type = 0;
  float weight = 1;
  friend bool operator==(const Neighbor&, const Neighbor&) = default;
};

/// Where neighbour lists are while a Graph is open.
enum class TopologyPlace : std::uint8_t {
  kMemory,
  kDirect,  ///< on disk: read when asked for, offsets and all else in memory
};

/// What every edge carries: name, dtype (kInt64 or kFloat32), and how many values.
struct EdgeAttributeInfo {
  std::string name;
  DataType dtype = DataType::kInt64;
  std::uint64_t dim = 1;
  std::uint64_t first_value = 0;  ///< where its values stand in EdgeFields::attributes
};

/// How Graph::Compact makes the next generation.
struct CompactOptions {
  /// Divide all edges anew, by `partition` (0 partitions: as many as there are). Else every edge
  /// stays in its partition, and new ones join their neighbours, which is faster and lets the
  /// balance fade a little with every update. Rows stay in their order then too, until it has
  /// drifted so far from PDS order that a static cache would lose 2 of 100 hits.
  bool repartition = false;
  PartitionOptions partition{.partitions = 0};
  std::optional<OrderKind> order = {};  ///< of the rows, made anew; nothing: as before

  /// Does nothing unless the delta has at least this share of the generation's edges.
  double least_delta = 0;

  /// Leaves out edges whose attribute of this name (integers, such as a time) is below a bound.
  std::string expire_attribute = {};
  std::int64_t expire_before = 0;

  /// How many generations before the new one stay on disk, and in how many bytes (KeepRule): from
  /// now on, even if there is nothing to compact; nothing: as before.
  std::optional<std::uint32_t> keep_generations = {};
  std::optional<std::uint64_t> keep_bytes = {};

  std::uint32_t threads = 1;

  /// Bound on what is taken beside the graph that is open; 0: none. Edges that are divided anew and
  /// do not fit pass through files below scratch/.
  std::uint64_t memory_bytes = 0;
};

struct CompactResult {
  bool compacted = false;  ///< false: the delta was below CompactOptions::least_delta
  std::uint64_t generation = 0;
  std::uint64_t commits = 0;  ///< of the delta that it took in
};

struct GraphOptions {
  TopologyPlace topology = TopologyPlace::kMemory;

  /// With kDirect: memory for blocks of neighbour lists that were looked up (Neighbors, Degree,
  /// LookUpNeighbors), in bytes; while a compaction ends, two such caches live. Samplers and jobs
  /// have a NeighborCache of their own (cache/neighbor_cache.h).
  std::uint64_t list_cache_bytes = 0;
};

}  // namespace rhizome
