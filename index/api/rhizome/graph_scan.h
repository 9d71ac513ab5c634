#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Iterates over all vertices of a graph that are not deleted, in ascending order of external id:
/// integers by value, strings by bytes.
///
/// Consistency: the scan holds a snapshot of the graph, taken when it is opened, until it is
/// destroyed. Writes, compactions and refreshes are not visible to it and do not invalidate it.
/// Memory: the ids that were added since the generation.
/// Threads: one at a time; any number of scans.
class VertexScan {
 public:
  /// Begins before the first vertex, on a snapshot of the graph's current commit.
  explicit VertexScan(const Graph& graph);
  ~VertexScan();
  VertexScan(VertexScan&&) noexcept;
  VertexScan& operator=(VertexScan&&) noexcept;

  /// A vertex with its external id and type.
  struct Entry {
    VertexId vertex = 0;
    ExternalId id = {};
    TypeId type = 0;
  };

  /// Returns the next vertex; nullopt at the end, or if an id cannot be read, which `status`
  /// reports.
  std::optional<Entry> Next();

  /// Returns OK, or the error that ended the scan.
  /// Errors: kOutOfMemory; of a graph opened with TopologyPlace::kLazy also kCorruption and
  /// kIoError.
  const Status& status() const;

  /// Moves to the first vertex whose id is not below `id`, which must be of the store's kind or its
  /// canonical text.
  /// Errors: kInvalidArgument, the store cannot have such an id.
  Status Seek(const ExternalId& id);

  const GraphSnapshot& graph() const;  ///< the snapshot

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Options of EdgeScan::Open.
struct EdgeScanOptions {
  /// The lists to traverse: kOut or kIn; kBoth chooses the out-lists if they are stored, otherwise
  /// the in-lists. In any case each edge is returned once, from source to target.
  Direction direction = Direction::kBoth;

  /// For an undirected graph: return each pair once, from the smaller vertex id, instead of from
  /// both ends.
  bool pairs_once = false;
};

/// Iterates over all edges of a graph, including edges of the delta: the list of one vertex after
/// another, in the order of the rows, which is the order on disk.
///
/// Consistency: as VertexScan.
/// Memory: the lists of at most 1,024 vertices, with 64 Ki edges and the rest of the last list.
/// Lists that are on disk are read one by one.
/// Threads: one at a time; any number of scans.
class EdgeScan {
 public:
  /// Errors: kInvalidArgument, the store does not keep these lists, or a partition is not loaded.
  static Result<EdgeScan> Open(const Graph& graph, const EdgeScanOptions& options = {});
  ~EdgeScan();
  EdgeScan(EdgeScan&&) noexcept;
  EdgeScan& operator=(EdgeScan&&) noexcept;

  /// An edge; weight is 1 in a graph without weights.
  struct Entry {
    VertexId src = 0;
    VertexId dst = 0;
    TypeId type = 0;
    float weight = 1;

    /// The edge's number (EdgeNumbering, graph_lookup.h), for ReadEdgeRows; -1 for an edge of the
    /// generation if these are in-lists without edge ids: of a store that keeps both directions,
    /// and neither weights nor attributes of edges.
    std::int64_t number = -1;
  };

  /// Returns the next edge; nullopt at the end.
  /// Errors: kCorruption; kIoError.
  Result<std::optional<Entry>> Next();

  /// Returns the number of vertices whose lists were traversed so far, out of
  /// graph().vertex_count(), for progress.
  std::uint64_t vertices_done() const;

  const GraphSnapshot& graph() const;  ///< the snapshot

 private:
  class Impl;
  explicit EdgeScan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Iterates over the rows of a vertex array, a block at a time, in the order on disk. It returns,
/// for every vertex that is not deleted, the row that Graph::ReadRows returns; of an array that is
/// bound to a vertex type, for the vertices of that type.
///
/// Consistency: the scan holds a snapshot of the graph, taken when it is opened, until it is
/// destroyed.
/// Memory: one decoded chunk, and 8 bytes for each row that was put since the generation.
/// Threads: one at a time; any number of scans.
/// Ownership: shares the snapshot; the FileSystem must outlive it.
class ArrayScan {
 public:
  /// A block of rows: vertices [n], and their rows, shape [n, entry().row_bytes()].
  struct Block {
    std::vector<VertexId> vertices;
    std::vector<std::byte> rows;
  };

  /// `array` is a name or a reference (emb@live).
  /// Errors: kNotFound, no such array; kInvalidArgument, not a vertex array; kCorruption; kIoError.
  static Result<ArrayScan> Open(const Graph& graph, std::string_view array);
  ~ArrayScan();
  ArrayScan(ArrayScan&&) noexcept;
  ArrayScan& operator=(ArrayScan&&) noexcept;

  /// Replaces `block` by the next rows, at most `most` (at least 1); fewer at the end or where
  /// vertices are deleted. Returns false, and no rows, at the end.
  /// Errors: kCorruption; kIoError.
  Result<bool> Next(std::uint64_t most, Block& block);

  const ArrayEntry& entry() const;
  std::uint64_t rows_done() const;  ///< of graph().vertex_count(); for progress
  const GraphSnapshot& graph() const;

 private:
  class Impl;
  explicit ArrayScan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
