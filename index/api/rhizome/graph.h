#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/store_options.h"
#include "rhizome/types.h"
#include "rhizome/write_batch.h"

namespace rhizome {
inline namespace internal {
class Adjacency;
class Delta;
class DeltaView;
class VertexOrder;
struct GraphParts;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

class GraphSnapshot;
struct GraphSchema;      // rhizome/graph_types.h
struct SampledSubgraph;  // rhizome/sampler.h
struct SamplerOptions;
struct SchemaChange;  // rhizome/graph_types.h

/// Options of Graph::Open of a path.
struct OpenOptions {
  Mode mode = Mode::kRead;
  GraphOptions graph = {};
  StoreOptions store = {};
};

/// A graph at a commit: the generation of a store with the changes since (docs/DESIGN.md). Open
/// loads and verifies topology, order and dictionary, which are then held in memory, as are the
/// edges of the delta. Adjacency lists may be left on disk: Neighbors reads single lists from
/// there, jobs read many at once.
///
/// A *live* graph, opened from a Store that may change, advances with each Write and Refresh. A
/// GraphSnapshot, opened from a const Store or created by Snapshot, never changes.
///
/// Threads: const functions, Write and Refresh may be called from many threads. The caller owns the
/// results: no result refers to a state that another thread may free. To access the parts of a
/// graph, take a Snapshot. In a forked child, reads of data in memory continue to work; Write,
/// Compact, Refresh, and reads of the catalogue fail with kInvalidArgument. The child may end by
/// exit() (storage/base/process.h).
/// Ownership: a graph that was opened by its path owns its store. Another store must outlive its
/// live graph, and has at most one.
class Graph {
 public:
  /// Opens the store at `path` on the POSIX file system, and a live graph that owns it.
  /// Errors: as Store::Open, and as Open of a store.
  static Result<std::unique_ptr<Graph>> Open(const Path& path, const OpenOptions& options = {});

  /// Creates a store without vertices and edges at `path`, on the POSIX file system, and opens it
  /// for writing. `path` must be absent, or an empty folder.
  /// Errors: kAlreadyExists; kInvalidArgument, a name, dtype or size in the schema is not possible,
  /// or `path` is inside a store; kBusy, it is being created; kIoError; kOutOfSpace. After an error
  /// there is no store.
  static Result<std::unique_ptr<Graph>> Create(const Path& path, const GraphSchema& schema,
                                               const StoreOptions& options = {});

  /// Opens a live graph. It is writable if the store is open for writing and all partitions are
  /// loaded.
  /// Errors: kInvalidArgument, no such partition; kCorruption; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<Graph>> Open(Store& store, const GraphOptions& options = {});

  /// Opens a snapshot of the graph at the store's current commit.
  /// Errors: as above.
  static Result<std::unique_ptr<GraphSnapshot>> Open(const Store& store,
                                                     const GraphOptions& options = {});

  /// Returns the number of deleted vertices of a store's generation without opening a graph. Reads
  /// the header of the dictionary of ids.
  /// Errors: kCorruption; kIoError.
  static Result<std::uint64_t> CountDeleted(const Store& store);
  virtual ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Returns a snapshot at the current commit. It is cheap (a few pointers), and its generation is
  /// not removed while it exists.
  std::shared_ptr<const GraphSnapshot> Snapshot() const;

  /// Applies a batch atomically; every read that begins after Write returns sees it. Batches of
  /// concurrent calls share one sync (group commit).
  /// Errors: kInvalidArgument, the batch does not fit the store, or the graph is not writable;
  /// kNotFound, an unknown vertex (see WriteOptions); kOutOfMemory, nothing was written and the
  /// graph remains writable; kIoError and kOutOfSpace, the store is read-only until it is opened
  /// again.
  Result<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options = {});

  /// Merges the generation and the delta into the next generation (docs/DESIGN.md, section 6),
  /// while reads and writes continue. Commits made during the compaction become the delta of the
  /// new generation. A crash at any time leaves the old or the new state. Earlier generations are
  /// removed in the background once no reader holds them, unless the store's retention rule
  /// (CompactOptions::keep_generations) keeps them. One compaction at a time. After an error
  /// nothing has changed.
  ///
  /// A graph that is open for reading can compact, too. Other processes can write at the same time:
  /// the store is open for writing only for a moment at the beginning, and for the commit, which
  /// waits until no other process writes.
  /// Errors: kBusy, another writer at the beginning, or another compaction or change of arrays;
  /// kInvalidArgument; kOutOfSpace; kOutOfMemory; kInterrupted; kIoError.
  Result<CompactResult> Compact(const CompactOptions& options, const JobControl& control);

  /// Adds weights or attributes to the edges of the store, by a compaction, which also merges the
  /// delta: existing edges get the weight 1, and zeros as attributes. Writers wait until it is
  /// done; reads continue. A crash at any time leaves the old or the new schema. If the change is
  /// empty, nothing is done. (Types are added by Write with WriteOptions::create_types, arrays by
  /// AddArray.) Errors: as Compact; kAlreadyExists, edges have weights or that attribute already;
  /// kInvalidArgument, an attribute is not possible.
  Result<CompactResult> Alter(const SchemaChange& change, const CompactOptions& options,
                              const JobControl& control);

  /// Advances a live graph to the last commit of other processes. If the store is open for writing,
  /// it only checks that the store was not moved or replaced; at a point it does nothing. On error
  /// nothing changes.
  /// Errors: as Open.
  Status Refresh();

  /// Returns the sequence number of the last commit that this graph includes.
  std::uint64_t sequence() const;

  /// Return the bound of vertex ids, including deleted ones, and the number of vertices that are
  /// not deleted.
  std::uint64_t vertex_count() const;
  std::uint64_t live_vertex_count() const;

  /// Returns the number of directed edges.
  /// Errors: as GraphSnapshot::delta_view.
  Result<std::uint64_t> CountEdges() const;

  /// Return copies of the names of types, including types that the delta added, and of the
  /// attributes of edges.
  std::vector<std::string> vertex_types() const;
  std::vector<std::string> edge_types() const;
  std::vector<EdgeAttributeInfo> edge_attributes() const;

  /// Returns the vertex types of the ends of edges, by edge type. Edges that were deleted count
  /// until the next compaction. Empty if there is one vertex type, or if the store was written by a
  /// build that did not record them. Takes time for each edge added since the last compaction.
  std::vector<EdgeEnds> edge_ends() const;

  /// Returns the number of vertices that are not deleted, by vertex type.
  std::vector<std::uint64_t> live_vertices_by_type() const;

  /// Returns the vertex with this external id.
  /// Errors: kNotFound, quoting the id.
  Result<VertexId> Find(const ExternalId& id) const;

  /// As Find, for a text, which is first converted to the store's kind of id.
  /// Errors: kNotFound.
  Result<VertexId> FindText(std::string_view text) const;

  /// The functions below accept ids (and rows) in [0, vertex_count()).
  /// Errors: kInvalidArgument, a value out of range.
  Result<ExternalId> ExternalIdOf(VertexId vertex) const;

  /// Returns the external id of a vertex as text; empty if `vertex` is out of range.
  std::string NameOf(VertexId vertex) const;

  /// Returns whether a vertex is deleted. A deleted vertex keeps its id, has no edges, and is not
  /// found by Find. Also true for ids that no vertex has. (It returns a bool and not a Result,
  /// because a Result in a condition would test only for success.)
  bool IsDeleted(VertexId vertex) const;

  /// Map a vertex to its row and back. The rows of new vertices follow the generation's rows, in
  /// the order of their ids.
  Result<Row> RowOf(VertexId vertex) const;
  Result<VertexId> VertexAt(Row row) const;
  /// Returns the type of a vertex, an index into vertex_types().
  Result<TypeId> TypeOf(VertexId vertex) const;

  /// Returns the number of edges in the lists of `vertex`, which is the length of Neighbors. kBoth
  /// adds both lists (a self-loop counts in each), but counts the single list of a symmetric graph
  /// once.
  /// Errors: kInvalidArgument, an id out of range, a direction that the store does not keep, or a
  /// partition that is not loaded: the partition of the vertex's owner, or, if the delta changes
  /// its list, any partition with its edges.
  Result<std::uint64_t> Degree(VertexId vertex, Direction direction) const;

  /// Returns all neighbours, sorted by (type, vertex id); parallel edges are repeated. kBoth
  /// returns the out-list, then the in-list; for a symmetric graph, its single list.
  /// Errors: as Degree, but every partition with edges of the vertex must be loaded; kCorruption,
  /// partitions contradict each other (see VerifyGraph).
  Result<std::vector<Neighbor>> Neighbors(VertexId vertex, Direction direction) const;

  /// As Neighbors, for the vertex that FindText returns.
  /// Errors: as above; kNotFound, quoting the id.
  Result<std::vector<Neighbor>> Neighbors(std::string_view id,
                                          Direction direction = Direction::kOut) const;

  /// Samples the subgraph around the vertices with these external ids; the default direction of
  /// SamplerOptions applies. A program that samples repeatedly should create a Sampler, which
  /// reuses its memory.
  /// Errors: as Sampler::Create and Sampler::Sample; kNotFound, quoting an id.
  Result<SampledSubgraph> Sample(const std::vector<std::string>& ids,
                                 const SamplerOptions& options) const;

  /// Copies the rows of `vertices` in an array to `out`, shape [vertices.size(), row bytes]: the
  /// row that was put last; otherwise the generation's row; for a new vertex without a row, zeros
  /// (-1 in `label`, 255 in `split`: none). The rows of one call are read in one deep batch
  /// (FileRows documents the memory that is held until the next generation). A service with a
  /// memory budget should use RowLookup.
  /// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array, an id out of range, a
  /// vertex of another type than the one that the array is bound to, a wrong size; kCorruption;
  /// kIoError.
  Status ReadRows(std::string_view array, std::span<const VertexId> vertices,
                  std::span<std::byte> out) const;

  /// As Neighbors, for edge type `type` only.
  /// Errors: as Neighbors; kInvalidArgument, no such type.
  Result<std::vector<Neighbor>> NeighborsOfType(VertexId vertex, Direction direction,
                                                TypeId type) const;

  /// Returns the type of an edge of the generation.
  /// Errors: kInvalidArgument, no such edge, or its partition is not loaded.
  Result<TypeId> TypeOfEdge(EdgeId edge) const;

  /// Returns the size in bytes of the partition files, loaded or not.
  std::uint64_t topology_bytes() const;

 protected:
  class Impl;
  explicit Graph(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  /// Returns a live graph that owns `store`.
  static Result<std::unique_ptr<Graph>> Own(std::unique_ptr<Store> store,
                                            const GraphOptions& options);

  const std::unique_ptr<Impl> impl_;
};

/// A graph that never changes, regardless of later writes, compactions and refreshes: for samplers
/// and jobs. Write and Compact fail with kInvalidArgument; Refresh does nothing.
/// Threads: all functions may be called from many threads.
/// Ownership: references and spans live as long as the snapshot.
class GraphSnapshot final : public Graph {
 public:
  ~GraphSnapshot() override;

  /// Returns the properties of the generation, without the delta.
  const GenerationInfo& info() const;
  std::uint64_t generation_edge_count() const;  ///< directed; without the delta, unlike CountEdges
  const Store& store() const;                   ///< a snapshot of the store, at the generation

  /// Returns the point at which another process can open this state (StoreOptions::at) while the
  /// snapshot lives.
  StorePoint point() const;

  /// Returns the state of the store's changes after commit sequence(). Its hash is zeros if it
  /// cannot be read.
  HistoryState history() const;

  /// Returns hashes that distinguish this state from the state of a diverged copy of the store:
  /// hashes of the graph's files, of the given arrays, and of the commits. Changes of other arrays
  /// do not affect the result.
  StateId StateWith(std::span<const std::string> arrays) const;

  /// Size of the delta.
  struct DeltaSize {
    std::uint64_t entries = 0;  ///< vertices, edges and rows that were put or deleted
    std::uint64_t runs = 0;     ///< number of sorted runs that hold them
  };
  DeltaSize delta_size() const;

  /// Returns the vertices whose row of `array` was put since the generation, so that the array's
  /// chunks do not hold it; without deleted vertices, ascending. `array` is one of store().
  std::vector<VertexId> ChangedRows(const ArrayEntry& array) const;

  /// Returns how far `array`, one of store(), is behind the graph, if `infer` computed it.
  /// Errors: kCorruption, kIoError, records of the delta cannot be read.
  Result<Staleness> StalenessOf(const ArrayEntry& array) const;

  /// Return the parts of the generation. `p` must be below partition_count(); otherwise the process
  /// aborts.
  std::uint32_t partition_count() const;
  const Adjacency& partition(std::uint32_t p) const;
  bool is_loaded(std::uint32_t p) const;  ///< see GraphOptions::partitions
  const VertexOrder& order() const;       ///< order of the generation
  std::shared_ptr<const GraphParts> parts() const;

  /// Return the changes since the generation, and the lists that they change. The view is built at
  /// its first use; it is null if nothing was written.
  /// Errors: kInvalidArgument, a partition is not loaded; any error of reading lists that are on
  /// disk.
  std::shared_ptr<const Delta> delta() const;
  Result<std::shared_ptr<const DeltaView>> delta_view() const;

 private:
  friend class Graph;
  using Graph::Graph;
};

}  // namespace rhizome
