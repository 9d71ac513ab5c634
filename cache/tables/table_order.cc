#include "cache/tables/table_order.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "index/topology/adjacency.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// `Number` is uint32_t or uint64_t; its maximum marks vertices without a row.
template <typename Number>
std::vector<Number> NumberVertices(const GraphSnapshot& graph,
                                   std::span<const std::uint32_t> tour) {
  constexpr Number kNone = std::numeric_limits<Number>::max();
  std::vector<Number> rows(graph.vertex_count(), kNone);
  Number next = 0;
  const auto number = [&](VertexId vertex) {
    Number& row = rows[static_cast<std::size_t>(vertex)];
    if (row == kNone) row = next++;
  };
  for (const std::uint32_t p : tour) {
    const Adjacency& partition = graph.partition(p);
    for (const bool interior : {true, false}) {
      for (LocalId local = 0; local < partition.vertex_count(); ++local) {
        if (partition.interior(local) == interior)
          number(graph.order().VertexAt(partition.RowOf(local)));
      }
    }
  }
  for (std::size_t vertex = 0; vertex < rows.size(); ++vertex)
    number(static_cast<VertexId>(vertex));
  return rows;
}

}  // namespace

Result<TableOrder> TableOrder::Of(const GraphSnapshot& graph,
                                  std::span<const std::uint32_t> tour) try {
  for (const std::uint32_t p : tour) {
    if (!graph.is_loaded(p))
      return Fail(Status::InvalidArgument(fmt::format("partition {} is not loaded", p)));
  }
  if (graph.vertex_count() < std::numeric_limits<std::uint32_t>::max())
    return TableOrder(VertexColumn(NumberVertices<std::uint32_t>(graph, tour)));
  return TableOrder(VertexColumn(NumberVertices<std::uint64_t>(graph, tour)));
} catch (...) {
  return Fail(StatusOfException());
}

std::vector<VertexId> TableOrder::Vertices() const {
  std::vector<VertexId> vertices(size());
  for (std::uint64_t vertex = 0; vertex < size(); ++vertex)
    vertices[static_cast<std::size_t>(rows_[vertex])] = static_cast<VertexId>(vertex);
  return vertices;
}

}  // namespace internal
}  // namespace rhizome
