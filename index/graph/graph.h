#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/external_id.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/index/staleness.h"
#include "rhizome/index/write_batch.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/types.h"
#include "rhizome/storage/verify.h"

namespace rhizome::inline internal {
class Adjacency;
class Delta;
class DeltaView;
class VertexOrder;
struct GraphParts;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

class GraphSnapshot;

/// A graph at a commit: the generation of a store with what was written since (docs/DESIGN.md).
/// Topology, order and dictionary are loaded and verified by Open and then held in memory, the
/// delta's edges too; neighbour lists may be left on disk, where single ones are read for
/// Neighbors, and many at once by jobs.
///
/// A *live* graph, opened from a Store that may change, moves on: with each Write, and with
/// Refresh. A GraphSnapshot, opened from a const Store or made by Snapshot, says the same for ever.
///
/// Threads: const functions, Write and Refresh may be called from many threads. What they return is
/// the caller's own: nothing refers to a state that another thread may let go of. Who looks at the
/// parts of a graph takes a Snapshot.
/// In a forked child what is in memory goes on working; Write, Compact and Refresh, and what reads
/// the catalogue, fail with kInvalidArgument. It may end by exit() (storage/process.h).
/// Ownership: the store of a live graph must outlive it, and one store has one live graph.
class Graph {
 public:
  /// A live graph. With a store open for writing it may be written to.
  /// Errors: kCorruption; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<Graph>> Open(Store& store, const GraphOptions& options = {});

  /// A fixed graph, as the store sees it now. Errors: as above.
  static Result<std::unique_ptr<GraphSnapshot>> Open(const Store& store,
                                                     const GraphOptions& options = {});

  /// How many vertices of a store's generation are deleted, without opening a graph: reads the
  /// header of the dictionary of ids. Errors: kCorruption; kIoError.
  static Result<std::uint64_t> CountDeleted(const Store& store);
  virtual ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// This graph as it is now, fixed. Costs a few pointers; keeps its generation from being removed.
  std::shared_ptr<const GraphSnapshot> Snapshot() const;

  /// Applies a batch: all of it or nothing, to be seen by every read that begins after it returns.
  /// Batches of concurrent calls share one sync. Errors: kInvalidArgument, the batch does not fit
  /// the store, or the graph cannot be written to; kNotFound, an unknown vertex (see WriteOptions);
  /// kOutOfMemory: nothing was written, and the graph goes on; kIoError, kOutOfSpace: afterwards
  /// the store is read-only until it is opened again.
  Result<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options = {});

  /// Makes the next generation from this one and the delta (DESIGN section 6), while readers and
  /// writers go on; what is written meanwhile becomes the delta of the new one. A crash at any
  /// moment leaves the old or the new state. Generations before are removed, once nobody reads them
  /// and the store's rule (CompactOptions::keep_generations) does not keep them, behind the scenes.
  /// One at a time. Errors: kBusy, another compaction is under way;
  /// kInvalidArgument; kOutOfSpace; kOutOfMemory; kInterrupted; kIoError: nothing has changed.
  Result<CompactResult> Compact(const CompactOptions& options, const JobControl& control);

  /// Moves a live graph on to what other processes have committed. Errors: as Open; then nothing
  /// changes.
  Status Refresh();

  /// The last commit that is seen, and what it was added to.
  std::uint64_t sequence() const;

  /// Bound of the vertex ids, deleted ones among them, and how many are not deleted.
  std::uint64_t vertex_count() const;
  std::uint64_t live_vertex_count() const;

  /// Directed edges. Errors: those of reading lists that are on disk.
  Result<std::uint64_t> CountEdges() const;

  /// Names of types, those that the delta added among them, and what edges carry. Copies.
  std::vector<std::string> vertex_types() const;
  std::vector<std::string> edge_types() const;
  std::vector<EdgeAttributeInfo> edge_attributes() const;

  /// Errors: kNotFound, quoting the id.
  Result<VertexId> Find(const ExternalId& id) const;

  /// Parses text as the store's kind of id first. Errors: kNotFound.
  Result<VertexId> FindText(std::string_view text) const;

  /// The functions below take ids (and rows) in [0, vertex_count()). Errors: kInvalidArgument, any
  /// other.
  Result<ExternalId> ExternalIdOf(VertexId vertex) const;

  /// A deleted vertex keeps its id; it has no edges and is not found. True of ids that no vertex
  /// has, too: a Result would be taken for its own success in a condition.
  bool IsDeleted(VertexId vertex) const;

  /// New vertices have the rows behind the generation's, in the order of their ids.
  Result<Row> RowOf(VertexId vertex) const;
  Result<VertexId> VertexAt(Row row) const;
  Result<TypeId> TypeOf(VertexId vertex) const;

  /// Number of edges in the lists of `vertex`, as long as Neighbors would be; kBoth adds both (a
  /// self-loop counts in each), but counts the one list of a symmetric graph once.
  /// Errors: kInvalidArgument, an id out of range, or a direction that the store does not keep.
  Result<std::uint64_t> Degree(VertexId vertex, Direction direction) const;

  /// All neighbours, sorted by (type, vertex id); parallel edges are repeated. kBoth gives the
  /// out-list, then the in-list; of a symmetric graph, the one list.
  /// Errors: as above; kCorruption, partitions that contradict each other (see VerifyGraph).
  Result<std::vector<Neighbor>> Neighbors(VertexId vertex, Direction direction) const;

  /// Copies the rows of `vertices` in an array to `out`, of vertices.size() * row bytes: what was
  /// put last, the generation's row, or where a new vertex has none zeros (in `label` -1, in
  /// `split` 255: none). Many in one call are read in one deep batch (FileRows, which says what is
  /// kept in memory until the next generation); a service with a budget has RowLookup.
  /// Errors: kNotFound, no such array; kInvalidArgument, not an array of vertices, an id out of
  /// range, a wrong size; kCorruption; kIoError.
  Status ReadRows(std::string_view array, std::span<const VertexId> vertices,
                  std::span<std::byte> out) const;

  /// Only those of edge type `type`. Errors: as above; kInvalidArgument, no such type.
  Result<std::vector<Neighbor>> NeighborsOfType(VertexId vertex, Direction direction,
                                                TypeId type) const;

  /// The type of an edge. Errors: kInvalidArgument, no such edge.
  Result<TypeId> TypeOfEdge(EdgeId edge) const;

  /// Bytes of the partition files.
  std::uint64_t topology_bytes() const;

 protected:
  class Impl;
  explicit Graph(std::unique_ptr<Impl> impl);
  const Impl& impl() const { return *impl_; }

 private:
  const std::unique_ptr<Impl> impl_;
};

/// A graph that stays as it is, whatever is written, compacted or refreshed meanwhile: for samplers
/// and jobs. Write and Compact are refused with kInvalidArgument; Refresh does nothing.
/// Threads: all functions from many threads. References and spans live as long as the snapshot.
class GraphSnapshot final : public Graph {
 public:
  ~GraphSnapshot() override;

  /// The generation: what is there without the delta.
  const GenerationInfo& info() const;
  std::uint64_t generation_edge_count() const;  ///< directed; CountEdges counts those of the graph
  const Store& store() const;                   ///< a snapshot of the store, at the generation

  /// How much the delta holds.
  struct DeltaSize {
    std::uint64_t entries = 0;  ///< vertices, edges and rows that were put or deleted
    std::uint64_t runs = 0;     ///< sorted runs that they lie in
  };
  DeltaSize delta_size() const;

  /// The vertices whose row of `array`, one of store(), was put since the generation, so that its
  /// chunks do not hold it; without deleted vertices, ascending.
  std::vector<VertexId> ChangedRows(const ArrayEntry& array) const;

  /// How far `array`, one of store(), is behind the graph, if `infer` computed it. Errors:
  /// kCorruption, kIoError: records of the delta that cannot be read.
  Result<Staleness> StalenessOf(const ArrayEntry& array) const;

  /// The parts. Partition p's file is `partition(p)`, where p is below partition_count(): any other
  /// ends the process.
  std::uint32_t partition_count() const;
  const Adjacency& partition(std::uint32_t p) const;
  const VertexOrder& order() const;  ///< of the generation
  std::shared_ptr<const GraphParts> parts() const;

  /// What was written since the generation, and the lists that it changes, made when they are first
  /// asked for; null where nothing was written. Errors: those of reading lists that are on disk.
  std::shared_ptr<const Delta> delta() const;
  Result<std::shared_ptr<const DeltaView>> delta_view() const;

 private:
  friend class Graph;
  using Graph::Graph;
};

/// Checks what only a graph can know (counts, permutation, offsets, that every edge has both its
/// sides, degrees, partition sets, sidecars against rows) and adds what is wrong to `report`.
Status VerifyGraph(FileSystem& fs, const Path& store, const JobControl& control,
                   VerifyReport& report);

}  // namespace rhizome
