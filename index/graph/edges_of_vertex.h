#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// An entry of an adjacency list with its edge.
struct EdgeOfVertex {
  Neighbor neighbor;
  Direction list = Direction::kOut;  ///< the list with the entry: kOut or kIn

  /// The number of the edge, for ReadEdgeRows; nullopt in in-lists of a graph with lists of both
  /// directions and neither weights nor edge attributes, which does not store it.
  std::optional<std::int64_t> edge;
};

/// Visits the entries of the lists of a vertex, as Graph::Neighbors returns them, but in no
/// particular order within a list, and without holding all of them in memory. With `type`, only
/// entries of this edge type.
/// Errors: as Graph::Neighbors; any error of `visit`.
/// Threads: any number at once.
Status VisitEdgesOf(const GraphSnapshot& graph, VertexId vertex, Direction direction,
                    std::optional<TypeId> type,
                    const std::function<Status(const EdgeOfVertex& edge)>& visit);

/// The number of entries of one type in one of the lists of a vertex.
struct TypeDegree {
  Direction list = Direction::kOut;  ///< kOut or kIn; kOut for the single list of a symmetric graph
  TypeId type = 0;
  std::uint64_t count = 0;
};

/// Counts the entries by list and type, ascending, without types that have no entry. Reads
/// lists only if the delta may change them. kBoth counts the lists that the store keeps.
/// Errors: as Graph::Degree.
/// Threads: any number at once.
Result<std::vector<TypeDegree>> CountEdgesOf(const GraphSnapshot& graph, VertexId vertex,
                                             Direction direction);

}  // namespace rhizome
