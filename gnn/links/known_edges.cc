#include "gnn/links/known_edges.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "index/base/parallel.h"
#include "index/delta/graph_parts.h"

namespace rhizome {
inline namespace internal {
namespace {

auto KeyOf(const VertexPair& edge) { return std::tuple(edge.src, edge.type, edge.dst); }

bool IsBefore(const VertexPair& a, const VertexPair& b) { return KeyOf(a) < KeyOf(b); }

/// Compares the given end and the type alone.
bool ListIsBefore(const VertexPair& a, const VertexPair& b) {
  return std::tuple(a.src, a.type) < std::tuple(b.src, b.type);
}

VertexPair Reversed(const VertexPair& edge) {
  return {.src = edge.dst, .dst = edge.src, .type = edge.type};
}

}  // namespace

Result<KnownEdges> KnownEdges::Of(const GraphSnapshot& graph) {
  const auto parts = graph.parts();
  for (const Direction direction : {Direction::kOut, Direction::kIn})
    RHIZOME_RETURN_IF_ERROR(parts->CheckDirection(direction));
  return KnownEdges(graph);
}

void KnownEdges::Add(const VertexPair& edge) {
  by_src_.push_back(edge);
  by_dst_.push_back(Reversed(edge));
  if (!graph_.info().symmetric) return;
  by_src_.push_back(Reversed(edge));
  by_dst_.push_back(edge);
}

void KnownEdges::Sort() {
  ParallelSort(by_src_.begin(), by_src_.end(), IsBefore);
  ParallelSort(by_dst_.begin(), by_dst_.end(), IsBefore);
}

Result<bool> KnownEdges::InStore(const VertexPair& edge) const {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Neighbor> neighbors,
                           graph_.NeighborsOfType(edge.src, Direction::kOut, edge.type));
  return std::any_of(neighbors.begin(), neighbors.end(),
                     [&](const Neighbor& neighbor) { return neighbor.vertex == edge.dst; });
}

Result<bool> KnownEdges::IsUnseen(VertexId vertex) const {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph_.Degree(vertex, Direction::kBoth));
  return degree == 0;
}

Status KnownEdges::AppendEnds(VertexId given, TypeId type, EdgeEnd open,
                              std::vector<Row>& rows) const {
  const auto parts = graph_.parts();
  const Direction direction = open == EdgeEnd::kDst ? Direction::kOut : Direction::kIn;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Neighbor> neighbors,
                           graph_.NeighborsOfType(given, direction, type));
  for (const Neighbor& neighbor : neighbors) rows.push_back(parts->RowOf(neighbor.vertex));
  const std::vector<VertexPair>& files = open == EdgeEnd::kDst ? by_src_ : by_dst_;
  const VertexPair key{.src = given, .dst = 0, .type = type};
  const auto [first, last] = std::equal_range(files.begin(), files.end(), key, ListIsBefore);
  for (auto edge = first; edge != last; ++edge) rows.push_back(parts->RowOf(edge->dst));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
