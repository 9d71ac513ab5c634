#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/edge_spool.h"
#include "rhizome/index/spill.h"
#include "rhizome/index/vertex_ids.h"

namespace rhizome::inline internal {

/// What a GraphInput has on disk: made by an ingestion whose edges do not fit in memory.
struct SpilledGraph {
  SpillSpace* space = nullptr;       ///< must outlive this
  std::uint64_t memory_bytes = 0;    ///< what the build may take
  bool edges_in_memory = false;      ///< they are in GraphInput::edges after all
  EdgeSpool ends;                    ///< src and dst of every edge, as vertex ids
  std::optional<EdgeSpool> columns;  ///< type, weight and attributes, in blocks of as many edges
  bool typed = false;                ///< does the graph have several edge types?
  bool weighted = false;
  std::vector<EdgeAttribute> attributes;  ///< their names and final dtypes, without values
  std::optional<StringIds> string_ids;    ///< for ExternalIdKind::kString
  SpillFile string_file;                  ///< what string_ids reads
};

/// Reads the edges with all their columns, block by block: a block of columns may be a part of one
/// of ends (SpoolBlockEdges). Ownership: `graph` must outlive it.
class SpilledEdgeReader {
 public:
  static Result<SpilledEdgeReader> Open(const SpilledGraph& graph);

  /// The next block; false at the end. Columns that the graph does not have are empty; attributes
  /// have their final dtypes.
  Result<bool> Next(EdgeList& edges);

 private:
  SpilledEdgeReader(const SpilledGraph& graph, EdgeSpoolReader ends)
      : graph_(&graph), ends_(std::move(ends)) {}
  /// Takes what beside_ has for the edges whose ends are there.
  Result<bool> TakeColumns(EdgeList& edges);

  const SpilledGraph* graph_;
  EdgeSpoolReader ends_;
  std::optional<EdgeSpoolReader> columns_;
  EdgeList block_;         // of ends
  std::size_t taken_ = 0;  // of its edges
  EdgeList beside_;
};

}  // namespace rhizome::inline internal
