#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Edges that are known to exist: the edges of a store, and of files.
/// Memory: 48 bytes for each edge of the files.
/// Threads: const functions from any number of threads.
/// Ownership: borrows the graph.
class KnownEdges {
 public:
  /// Errors: kInvalidArgument, the store does not keep the lists in both directions.
  static Result<KnownEdges> Of(const GraphSnapshot& graph);

  /// Adds an edge of a file; of an undirected store, in both directions. Sort must follow.
  void Add(const VertexPair& edge);
  void Sort();

  std::uint64_t bytes() const { return 2 * by_src_.capacity() * sizeof(VertexPair); }

  /// Returns whether the store has an edge. Errors: as Graph::NeighborsOfType.
  Result<bool> InStore(const VertexPair& edge) const;

  /// Returns whether no edge of the store has this end. Errors: as Graph::Degree.
  Result<bool> IsUnseen(VertexId vertex) const;

  /// Appends the rows of the other ends of known edges of a type whose end `open` is open and whose
  /// other end is `given`; rows may be repeated. Errors: as Graph::NeighborsOfType.
  Status AppendEnds(VertexId given, TypeId type, EdgeEnd open, std::vector<Row>& rows) const;

 private:
  explicit KnownEdges(const GraphSnapshot& graph) : graph_(graph) {}

  const GraphSnapshot& graph_;
  std::vector<VertexPair> by_src_;  // sorted by (src, type, dst)
  std::vector<VertexPair> by_dst_;  // with src and dst exchanged, then sorted the same way
};

}  // namespace internal
}  // namespace rhizome
