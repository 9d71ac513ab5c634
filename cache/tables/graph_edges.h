#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class DeltaView;
}  // namespace internal

inline namespace internal {

/// The edges of a graph by group and position, in any order: a group for each partition, then one
/// for the edges that the delta added. A pair of an undirected graph occurs twice, once from each
/// end.
/// Memory: 8 bytes for each edge of the delta.
/// Threads: one at a time.
class GraphEdges {
 public:
  /// Errors: kInvalidArgument, a partition is not loaded; errors of reading lists that are on disk.
  static Result<GraphEdges> Of(std::shared_ptr<const GraphSnapshot> graph);

  /// Returns the number of positions of each group. Edges of the generation that the delta deleted
  /// keep theirs.
  std::span<const std::uint64_t> counts() const { return counts_; }

  /// Sets `edges` to the edges at `positions` of a group, in that order, without those that the
  /// delta deleted. Errors: kCorruption, kIoError, of lists that are on disk.
  Status Read(std::uint32_t group, std::span<const std::uint64_t> positions,
              std::vector<VertexPair>& edges);

  const GraphSnapshot& graph() const { return *graph_; }

 private:
  explicit GraphEdges(std::shared_ptr<const GraphSnapshot> graph) : graph_(std::move(graph)) {}
  Status CountEdges();
  Status ReadPartition(std::uint32_t p, std::span<const std::uint64_t> positions,
                       std::vector<VertexPair>& edges);
  void ReadDelta(std::span<const std::uint64_t> positions, std::vector<VertexPair>& edges) const;
  bool IsErased(Row row, std::uint32_t p, std::uint64_t position) const;
  VertexPair Directed(VertexId from, VertexId to, TypeId type) const;

  std::shared_ptr<const GraphSnapshot> graph_;
  std::shared_ptr<const DeltaView> view_;  // null: no delta
  Direction direction_ = Direction::kOut;  // of the lists that number the edges
  std::vector<std::uint64_t> counts_;
  std::vector<Row> delta_rows_;  // by position: the row whose list has the edge
  std::vector<std::size_t> order_;
  std::vector<LocalId> scratch_;
};

}  // namespace internal
}  // namespace rhizome
