#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/dtype.h"
#include "rhizome/export.h"
#include "rhizome/partitioner.h"
#include "rhizome/reorder.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// An edge, valid within one generation: its position among the edges of its partition.
struct EdgeId {
  PartitionId partition = 0;
  std::uint64_t position = 0;
  friend bool operator==(const EdgeId&, const EdgeId&) = default;
};

/// One entry of an adjacency list.
struct Neighbor {
  VertexId vertex = 0;
  TypeId type = 0;
  float weight = 1;
  friend bool operator==(const Neighbor&, const Neighbor&) = default;
};

/// Storage of adjacency lists while a Graph is open.
enum class TopologyPlace : std::uint8_t {
  kMemory,
  kDirect,  ///< on disk and read on demand; offsets and everything else in memory
};

/// Describes an edge attribute: its name, dtype (kInt64 or kFloat32), and number of values. Every
/// edge has it.
struct EdgeAttributeInfo {
  std::string name;
  DataType dtype = DataType::kInt64;
  std::uint64_t dim = 1;
  std::uint64_t first_value = 0;  ///< index of its first value in EdgeFields::attributes
};

/// Options of Graph::Compact.
struct CompactOptions {
  /// If true, all edges are partitioned again by `partition` (0 partitions: the same number as
  /// before). Otherwise every edge remains in its partition, and new edges join their neighbours,
  /// which is faster, but the balance degrades slightly with every update. The rows then keep their
  /// order as well, until it has drifted so far from PDS order that a static cache would lose 2 of
  /// 100 hits.
  bool repartition = false;
  PartitionOptions partition{.partitions = 0};
  std::optional<OrderKind> order = {};  ///< new order of the rows; unset: as before

  /// Compact does nothing if the delta is smaller than this share of the generation's edges.
  double min_delta = 0;

  /// If set, Compact drops edges whose attribute of this name (integers, such as a time) is below
  /// expire_before.
  std::string expire_attribute = {};
  std::int64_t expire_before = 0;

  /// Retention: the number of generations before the new one that are kept on disk, and the bytes
  /// they may use (KeepRule). The rule applies from now on, even if nothing is compacted. Unset:
  /// unchanged.
  std::optional<std::uint32_t> keep_generations = {};
  std::optional<std::uint64_t> keep_bytes = {};

  std::uint32_t threads = 1;

  /// Bound on the memory besides the open graph, in bytes; 0: none. Edges that are partitioned
  /// again and do not fit pass through files below scratch/.
  std::uint64_t memory_bytes = 0;
};

/// The result of Graph::Compact.
struct CompactResult {
  bool compacted = false;  ///< false: the delta was below CompactOptions::min_delta
  std::uint64_t generation = 0;
  std::uint64_t commits = 0;  ///< number of commits of the delta that were merged
};

/// Options of Graph::Open.
struct GraphOptions {
  TopologyPlace topology = TopologyPlace::kMemory;

  /// With kDirect: bytes of memory for a cache of blocks of adjacency lists, used by Neighbors,
  /// Degree and LookUpNeighbors. At the end of a compaction two such caches exist. Samplers and
  /// jobs use a separate NeighborCache (cache/lists/neighbor_cache.h).
  std::uint64_t list_cache_bytes = 0;

  /// The partitions to load, in any order; empty: all. For the others only the headers are read, so
  /// that a process holds its share of the topology. Order, external ids, arrays and the delta are
  /// complete. An operation that needs edges of a partition that is not loaded fails with
  /// kInvalidArgument and names the partition. This affects single lists, degrees and edges of
  /// other partitions, and every operation that may need any list (samplers, scans, caches of
  /// lists, CountEdges with a delta, Write, Compact). Open fails with kInvalidArgument if there is
  /// no such partition.
  std::vector<PartitionId> partitions = {};
};

}  // namespace rhizome
