#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/generation/edge_spool.h"
#include "index/generation/id_spool.h"
#include "index/generation/spill.h"

namespace rhizome {
inline namespace internal {

/// The parts of a GraphInput that are on disk, created by an ingestion whose edges do not fit in
/// memory.
struct SpilledGraph {
  SpillSpace* space = nullptr;       ///< must outlive this object
  std::uint64_t memory_bytes = 0;    ///< limit on the build's memory
  bool edges_in_memory = false;      ///< the edges fitted in memory and are in GraphInput::edges
  EdgeSpool ends;                    ///< src and dst of every edge, as vertex ids
  std::optional<EdgeSpool> columns;  ///< type, weight and attributes of the same edges
  bool typed = false;                ///< the graph has several edge types
  bool weighted = false;
  std::vector<EdgeAttribute> attributes;        ///< their names and final dtypes, without values
  std::optional<SpilledDictionary> dictionary;  ///< of an ingestion whose ids are not dense
};

/// Reads the edges with all their columns, block by block. A block of columns may cover only a part
/// of a block of ends (SpoolBlockEdges).
/// Ownership: `graph` must outlive it.
class SpilledEdgeReader {
 public:
  static Result<SpilledEdgeReader> Open(const SpilledGraph& graph);

  /// Reads the next block; false at the end. Columns that the graph does not have are empty;
  /// attributes have their final dtypes.
  Result<bool> Next(EdgeList& edges);

 private:
  SpilledEdgeReader(const SpilledGraph& graph, EdgeSpoolReader ends)
      : graph_(&graph), ends_(std::move(ends)) {}
  /// Moves the columns in beside_ to the edges whose ends are in `edges`.
  Result<bool> TakeColumns(EdgeList& edges);

  const SpilledGraph* graph_;
  EdgeSpoolReader ends_;
  std::optional<EdgeSpoolReader> columns_;
  EdgeList block_;         // a block of ends
  std::size_t taken_ = 0;  // number of edges of block_ already returned
  EdgeList beside_;
};

}  // namespace internal
}  // namespace rhizome
