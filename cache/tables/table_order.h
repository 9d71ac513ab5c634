#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/base/vertex_column.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Maps the vertices of a graph to the rows of a table. Rows are in the order in which a tour of
/// the partitions first needs them, so that rows that are needed together are adjacent on disk: for
/// each partition, the vertices that only it has, then those that it shares with later ones.
/// Vertices that no partition has come last. Every vertex in [0, vertex_count()) has a row, even if
/// it was deleted. Memory: 4 bytes for each vertex; 8 above 2^32. Threads: const.
class TableOrder {
 public:
  /// Errors: kInvalidArgument, a partition is not loaded; kOutOfMemory.
  static Result<TableOrder> Of(const GraphSnapshot& graph, std::span<const std::uint32_t> tour);

  std::uint64_t size() const { return rows_.size(); }

  /// Returns the row of a vertex below size().
  Row RowOf(VertexId vertex) const { return rows_[static_cast<std::size_t>(vertex)]; }

  /// Returns the vertex of each row; 8 bytes each.
  std::vector<VertexId> Vertices() const;

 private:
  explicit TableOrder(VertexColumn rows) : rows_(std::move(rows)) {}
  const VertexColumn rows_;  // by vertex
};

}  // namespace internal
}  // namespace rhizome
