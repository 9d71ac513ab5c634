#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "rhizome/export.h"
#include "rhizome/external_id.h"
#include "rhizome/graph.h"
#include "rhizome/result.h"
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

  /// Returns the next vertex; nullopt at the end.
  std::optional<Entry> Next();

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
/// Memory: the lists of 1,024 vertices or 64 Ki edges, whichever is smaller, or one longer list.
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

/// Visits the edges of a partition of the generation in the order of their edge ids: edge i has row
/// i in the partition's edge arrays. Edges of the delta have no such rows and are not visited.
/// Errors: kInvalidArgument, no such partition, or it is not loaded; any error of `visit`;
/// kCorruption; kIoError.
Status ScanEdgesById(const GraphSnapshot& graph, std::uint32_t partition,
                     const std::function<Status(VertexId src, VertexId dst, TypeId type)>& visit);

/// Returns the number of edges that ScanEdgesById visits.
/// Errors: kInvalidArgument, no such partition.
Result<std::uint64_t> CountEdgesById(const GraphSnapshot& graph, std::uint32_t partition);

}  // namespace rhizome
