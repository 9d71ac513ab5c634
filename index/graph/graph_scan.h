#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "rhizome/index/external_id.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// All vertices of a graph that are not deleted, in ascending order of external id: integers by
/// value, strings by bytes.
///
/// Consistency: what the graph held when the scan was opened, whatever is written, compacted or
/// refreshed meanwhile: the scan holds a snapshot until it goes, and is never invalidated.
/// Memory: the ids that were added since the generation.
/// Threads: one at a time; any number of scans.
class VertexScan {
 public:
  explicit VertexScan(const Graph& graph);
  ~VertexScan();
  VertexScan(VertexScan&&) noexcept;
  VertexScan& operator=(VertexScan&&) noexcept;

  struct Entry {
    VertexId vertex = 0;
    ExternalId id = {};
    TypeId type = 0;
  };

  /// The next one; nothing at the end.
  std::optional<Entry> Next();

  /// Goes to the first vertex whose id is not below `id`, which is the store's kind of id or its
  /// canonical text. Errors: kInvalidArgument, the store cannot have such an id.
  Status Seek(const ExternalId& id);

  const GraphSnapshot& graph() const;  ///< the snapshot

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct EdgeScanOptions {
  /// Which lists are walked: kOut or kIn; kBoth: the out-lists where they are kept, else the
  /// in-lists. Each edge is given once either way, from source to target.
  Direction direction = Direction::kBoth;

  /// Of an undirected graph each pair once, from the smaller vertex id, not from both ends.
  bool pairs_once = false;
};

/// All edges of a graph, with those that were written since the generation: the lists of one vertex
/// after another, in the order of the rows, which is the disk's.
///
/// Consistency: as VertexScan. Memory: the lists of 1,024 vertices or 64 Ki edges, whichever is
/// less, or one longer list. Lists that are on disk are read one by one.
/// Threads: one at a time; any number of scans.
class EdgeScan {
 public:
  /// Errors: kInvalidArgument, lists that the store does not keep.
  static Result<EdgeScan> Open(const Graph& graph, const EdgeScanOptions& options = {});
  ~EdgeScan();
  EdgeScan(EdgeScan&&) noexcept;
  EdgeScan& operator=(EdgeScan&&) noexcept;

  struct Entry {
    VertexId src = 0;
    VertexId dst = 0;
    TypeId type = 0;
    float weight = 1;
  };

  /// The next one; nothing at the end. Errors: kCorruption; kIoError.
  Result<std::optional<Entry>> Next();

  /// How many vertices' lists were walked so far, of graph().vertex_count(): for progress.
  std::uint64_t vertices_done() const;

  const GraphSnapshot& graph() const;  ///< the snapshot

 private:
  class Impl;
  explicit EdgeScan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
