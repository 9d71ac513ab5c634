#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

class GraphSnapshot;

/// An attribute that every edge of a store has.
struct EdgeAttributeSchema {
  std::string name;                   ///< not a name of EdgeFields, such as "type" or "weight"
  DataType dtype = DataType::kInt64;  ///< kInt64, kFloat32 or kFloat64; `time` must be one kInt64
  std::uint64_t dim = 1;              ///< number of values of an edge

  /// The meaning of the values, such as `null` (EdgeAttributeInfo::attributes).
  std::vector<std::pair<std::string, std::string>> attributes = {};
  friend bool operator==(const EdgeAttributeSchema&, const EdgeAttributeSchema&) = default;
};

/// An array with one row for each vertex of a store.
struct ArraySchema {
  std::string name;
  DataType dtype = DataType::kFloat32;
  std::uint64_t dim = 1;
  ArrayLayout layout = ArrayLayout::kRow;

  /// Metadata that describes the values, such as the names of classes (ArrayEntry::attributes).
  std::vector<std::pair<std::string, std::string>> attributes = {};
  friend bool operator==(const ArraySchema&, const ArraySchema&) = default;
};

/// The types, columns and arrays of a store (docs/DESIGN.md, "The schema of a store").
struct GraphSchema {
  bool text_ids = false;                    ///< external ids are texts; otherwise they are integers
  bool undirected = false;                  ///< every edge has both directions
  bool weighted = false;                    ///< every edge has a weight
  Direction directions = Direction::kBoth;  ///< lists that are kept; undirected: kBoth
  std::vector<std::string> vertex_types = {"vertex"};
  std::vector<std::string> edge_types = {"edge"};
  std::vector<EdgeAttributeSchema> edge_attributes = {};
  std::vector<ArraySchema> arrays = {};
  friend bool operator==(const GraphSchema&, const GraphSchema&) = default;
};

/// Additions to the edges of a store (Graph::Alter).
struct SchemaChange {
  bool weighted = false;                                  ///< existing edges get the weight 1
  std::vector<EdgeAttributeSchema> edge_attributes = {};  ///< existing edges get zeros

  bool empty() const { return !weighted && edge_attributes.empty(); }
};

/// Returns the schema of a graph. Arrays that the store computes (embeddings of `infer`, homes,
/// marks of stale rows) are not part of it; of an array with versions it has the one that the plain
/// name refers to. Texts are not part of a schema either: an array of texts has the dtype of its
/// codes.
GraphSchema SchemaOf(const GraphSnapshot& graph);

/// Parses a schema in JSON; the form is documented in docs/DESIGN.md. Every member may be absent,
/// and then has the value of a default GraphSchema.
/// Errors: kInvalidArgument, not JSON, an unknown member, or a value of the wrong kind, by name.
Result<GraphSchema> ParseSchema(std::string_view json);

/// Returns the JSON from which ParseSchema returns the same schema: on several lines, with a line
/// feed at the end.
std::string SchemaText(const GraphSchema& schema);

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

/// External ids in memory, all of them integers or all of them texts; the other list is empty.
/// Ownership: borrows both lists, and the texts.
struct IdSpan {
  std::span<const std::int64_t> integers = {};
  std::span<const std::string_view> texts = {};

  std::size_t size() const { return integers.size() + texts.size(); }
};

/// Edges in memory: edge i goes from src[i] to dst[i]. Both have the same size and kind of ids.
struct EdgeSpans {
  IdSpan src;
  IdSpan dst;

  std::size_t size() const { return src.size(); }
};

/// The user's key of a vertex: an integer or a UTF-8 string.
using ExternalId = Variant<std::int64_t, std::string>;

/// Formats an id: "42" or "dog.n.01".
std::string ToString(const ExternalId& id);

/// Parses a canonical decimal integer: no sign except '-', no leading zeros, in range. Returns
/// nullopt for any other text.
std::optional<std::int64_t> ParseCanonicalInteger(std::string_view text);

/// The staleness of an array that `infer` computed, as known without reading lists.
struct Staleness {
  /// The number of rows marked in NAME.stale, from the array's attributes.
  std::uint64_t marked_rows = 0;

  /// Edges, vertices or features were written after the commit that the array was computed from,
  /// and no compaction has marked the affected rows yet.
  bool written_since = false;

  bool any() const { return marked_rows != 0 || written_since; }
};

/// The orders of rows (docs/DESIGN.md, section 4, "Order").
enum class OrderKind : std::uint8_t {
  /// (owner, vertex type, degree descending, vertex id), after GLISP's PDS (section III-D), which
  /// sorts by partition and degree
  kPds,
  kPs,       ///< (owner, vertex type, vertex id)
  kNatural,  ///< vertex id
  kDegree,   ///< (degree descending, vertex id)
  kRandom,   ///< a seeded shuffle
};

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

/// A pair of vertices, such as the ends of an edge. `type` matters where a caller says so.
struct VertexPair {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  friend bool operator==(const VertexPair&, const VertexPair&) = default;
};

/// Writes the next pairs to the front of `out` and returns their number, which is less than
/// out.size() only at the end. Its errors end the run and are returned unchanged.
using PairSource = std::function<Result<std::size_t>(std::span<VertexPair> out)>;

/// Writes the next vertices to the front of `out`, as PairSource.
using VertexSource = std::function<Result<std::size_t>(std::span<VertexId> out)>;

/// Storage of the topology, and of the order and the external ids, while a Graph is open.
enum class TopologyPlace : std::uint8_t {
  kMemory,
  kDirect,  ///< adjacency lists on disk and read on demand; offsets and everything else in memory

  /// All on disk. Open reads only tables of contents; look-ups read and verify the blocks that they
  /// need, which then stay in memory, except lists. For a program that looks up a few vertices.
  /// Samplers, jobs, scans of edges, writes and compactions fail with kInvalidArgument.
  kLazy,
};

/// Describes an edge attribute: its name, dtype (kInt64, kFloat32 or kFloat64), and number of
/// values. Every edge has it.
struct EdgeAttributeInfo {
  std::string name;
  DataType dtype = DataType::kInt64;
  std::uint64_t dim = 1;
  std::uint64_t first_value = 0;  ///< index of its first value in EdgeFields::attributes

  /// The meaning of the values: `null` and `type` (EdgeArrayFile::attributes).
  std::vector<std::pair<std::string, std::string>> attributes = {};
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
  /// expire_before. Edges without a value (null) remain.
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

  /// With kDirect and kLazy: bytes of memory for a cache of blocks of adjacency lists, used by
  /// Neighbors, Degree and LookUpNeighbors. At the end of a compaction two such caches exist.
  /// Samplers and jobs use a separate NeighborCache (cache/lists/neighbor_cache.h).
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
