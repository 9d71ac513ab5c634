#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Limits of a batched look-up.
struct LookupOptions {
  /// Checked between vertices, or between batches of rows. A call past it fails with kInterrupted.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const JobControl* control = nullptr;  ///< if cancelled, calls fail with kInterrupted
};

/// The adjacency lists of n vertices in CSR form. A caller that keeps the object between calls
/// reuses its memory.
struct NeighborLists {
  std::vector<std::uint64_t> offsets;  ///< [n + 1]: list i is [offsets[i], offsets[i + 1])
  std::vector<VertexId> vertices;
  std::vector<TypeId> types;   ///< empty if the graph has one edge type
  std::vector<float> weights;  ///< empty if the graph has no weights
};

/// Looks up the neighbours of many vertices in one call, all at one commit (for a live graph, the
/// commit when the call begins). The order within a list is unspecified; otherwise the lists equal
/// those that Graph::Neighbors returns. After an error `lists` is unspecified.
/// Errors: as Graph::Neighbors; kInterrupted.
/// Threads: any number at once, each with its own `lists`.
Status LookUpNeighbors(const Graph& graph, std::span<const VertexId> vertices, Direction direction,
                       NeighborLists& lists, const LookupOptions& options = {});

/// Reads adjacency lists that are on disk (TopologyPlace::kDirect) into the graph's cache
/// (GraphOptions::list_cache_bytes): all of them, or, if they do not fit, the lists of the highest
/// degrees until the cache is full. Look-ups may run concurrently. Loaded lists remain in the cache
/// even after an error. kBoth loads the directions that the store keeps. Reports progress to
/// `options.control`, in bytes.
/// Errors: kInterrupted, cancelled or past the deadline; kCorruption; kIoError.
Status WarmNeighbors(const Graph& graph, Direction direction, const LookupOptions& options = {});

/// Looks up rows of one vertex array, for services. Rows are verified when they are read, and
/// cached in blocks of about 4 KiB within a memory budget. With a live graph, a call reads at the
/// commit at which it begins, of the version that the name then refers to.
/// Threads: Read may be called from any number at once.
/// Ownership: `graph` must outlive it.
class RowLookup {
 public:
  /// Options of Open.
  struct Options {
    /// Bytes of the whole cache, including its tables; allocated as it fills. In addition, a thread
    /// that misses rows needs a queue and about 2 MiB (FileRows).
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  };

  /// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array; kCorruption.
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array,
                                                 const Options& options);
  static Result<std::unique_ptr<RowLookup>> Open(const Graph& graph, std::string_view array) {
    return Open(graph, array, Options{});
  }
  ~RowLookup();

  /// Returns the row size of the array that is open now.
  std::uint64_t row_bytes() const;

  /// Reads rows into the cache until the budget is used up, beginning with the vertices of the
  /// highest degrees; otherwise as WarmNeighbors. Rows of the delta are in the catalogue and are
  /// not read.
  Status Warm(const LookupOptions& options = {}) const;

  /// Copies the rows of `vertices` to `out`, shape [vertices.size(), row_bytes()], with the values
  /// that Graph::ReadRows returns. After an error `out` is unspecified.
  /// Errors: kInvalidArgument, an id out of range, a wrong size; kInterrupted; kCorruption;
  /// kIoError.
  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out,
              const LookupOptions& options = {}) const;

 private:
  class Impl;
  explicit RowLookup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Look-ups of ids for many vertices in one call, all at one commit (for a live graph, the commit
/// when the call begins). `out` has the length of the input; after an error it is unspecified.
/// Errors: kInvalidArgument, a value out of range (naming it), or an `out` of another length.
/// Threads: any.
Status VerticesAt(const Graph& graph, std::span<const Row> rows, std::span<VertexId> out);
Status RowsOf(const Graph& graph, std::span<const VertexId> vertices, std::span<Row> out);
Status TypesOf(const Graph& graph, std::span<const VertexId> vertices, std::span<TypeId> out);

/// Finds the vertices of external ids, as Graph::Find does.
/// Errors: as above; kNotFound, quoting the first unknown id.
Status FindAll(const Graph& graph, const IdSpan& ids, std::span<VertexId> out);

/// External ids of a store's kind; the list of the other kind is empty.
struct ExternalIds {
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
};

/// Returns the external ids of vertices, in order.
/// Errors: kInvalidArgument, an id out of range.
Result<ExternalIds> ExternalIdsOf(const Graph& graph, std::span<const VertexId> vertices);

/// Numbers the edges of a snapshot from 0, so that an EdgeId is one integer: partition by
/// partition, each in the order of its edge ids, followed by the edges written since the
/// generation, in the order of their commits. The number of an edge does not change with further
/// commits, and is the same in every process that reads the store, until the next compaction.
/// Threads: const.
/// Ownership: a value.
class EdgeNumbering {
 public:
  explicit EdgeNumbering(const GraphSnapshot& graph);

  std::int64_t Of(const EdgeId& edge) const {
    return static_cast<std::int64_t>(first_[edge.partition] + edge.position);
  }

  /// Returns the edge with a number.
  /// Errors: kInvalidArgument, a negative number.
  Result<EdgeId> At(std::int64_t number) const;

  /// Returns the number of edges of the generation. They have lower numbers than all other edges.
  std::uint64_t generation_edges() const { return first_.back(); }

 private:
  std::vector<std::uint64_t> first_;  // [partitions + 1]; last: edges written since the generation
};

/// Returns the columns that ReadEdgeRows can read: the attributes of the edges
/// (Graph::edge_attributes); "weight", a float32, if the graph has weights; and "type", an int64,
/// which is an index into edge_types(). An attribute with one of these names takes precedence over
/// the built-in column.
std::vector<EdgeAttributeInfo> EdgeColumns(const Graph& graph);

/// Returns the column with a name.
/// Errors: kNotFound, listing the existing names.
Result<EdgeAttributeInfo> FindEdgeColumn(const Graph& graph, std::string_view name);

/// Reads a column of edges by their numbers (EdgeNumbering, graph_lookup.h), for example for the
/// edges that a sampler drew. Numbers may repeat. `out` has the shape [edges.size(), values of the
/// column]. Numbers are valid for one generation; after a compaction they denote other edges, so
/// use one Snapshot for this function and for the sampler. An edge of the generation that was
/// deleted later still has its values.
/// Errors: kNotFound, no such column; kInvalidArgument, a number that no edge has (naming it), an
/// edge written since the generation and deleted again, a wrong size of `out`, values from files in
/// a forked child, or a weight or type of a partition that is not loaded; kCorruption; kIoError.
/// After an error `out` is unspecified.
/// Threads: any.
Status ReadEdgeRows(const Graph& graph, std::string_view name, std::span<const std::int64_t> edges,
                    std::span<std::byte> out);

/// A vertex, and the cosine between its row and the query.
struct ScoredVertex {
  VertexId vertex = 0;
  double score = 0;
  friend bool operator==(const ScoredVertex&, const ScoredVertex&) = default;
};

/// Returns the k vertices whose rows of `array` have the largest cosine with `query`, shape
/// [columns], the largest first and ties by vertex id. Rows that are all zeros or not finite are
/// omitted. It compares all rows, a chunk in memory at a time; sums are in double. `non_finite`, if
/// not null, is set to the number of rows omitted because of NaN or an infinite value.
/// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array, a query of another width
/// or without a direction (all zeros, or not finite), a value that float32 cannot hold;
/// kInterrupted; any error of reading.
Result<std::vector<ScoredVertex>> NearestRows(const Graph& graph, std::string_view array,
                                              std::span<const float> query, std::uint64_t k,
                                              const JobControl& control,
                                              std::uint64_t* non_finite = nullptr);

/// As NearestRows, with the row of a vertex as the query; the vertex itself is omitted.
/// Errors: as NearestRows; kInvalidArgument, an id out of range.
Result<std::vector<ScoredVertex>> NearestVertices(const Graph& graph, std::string_view array,
                                                  VertexId vertex, std::uint64_t k,
                                                  const JobControl& control,
                                                  std::uint64_t* non_finite = nullptr);

}  // namespace rhizome
