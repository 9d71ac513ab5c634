#include "index/delta/type_facts.h"

#include "index/base/edge_ends.h"

namespace rhizome {
inline namespace internal {

TypeId TypeOfVertex(const VertexOrder& order, const Delta& delta, VertexId vertex) {
  return static_cast<std::uint64_t>(vertex) < order.size() ? order.TypeOf(order.RowOf(vertex))
                                                           : delta.TypeOf(vertex);
}

std::vector<EdgeEnds> EdgeEndsOf(const GraphParts& parts, const Delta& delta) {
  const GenerationInfo& info = parts.info();
  if (delta.vertex_types().size() < 2) return {};
  std::vector<EdgeEnds> known = info.edge_ends;
  if (info.edges == 0) {
    known.clear();
  } else if (info.vertex_types.size() < 2) {
    known.assign(info.edge_types.size(), {.source = 0, .destination = 0});
  } else if (known.empty()) {
    return {};
  }
  const auto type_of = [&](VertexId vertex) { return TypeOfVertex(parts.order, delta, vertex); };
  EndsOfEdges ends(known, delta.edge_types().size());
  delta.ForEachAdded([&](const DeltaEdge& edge) {
    ends.Add(edge.type, type_of(edge.vertex), type_of(edge.neighbor));
  });
  return ends.ByType();
}

std::vector<std::uint64_t> VerticesByType(const GraphParts& parts, const Delta& delta) {
  std::vector<std::uint64_t> counts(delta.vertex_types().size(), 0);
  const VertexOrder& order = parts.order;
  const auto segments = order.segments();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto end = i + 1 < segments.size() ? static_cast<std::uint64_t>(segments[i + 1].first_row)
                                             : order.size();
    counts[segments[i].type] += end - static_cast<std::uint64_t>(segments[i].first_row);
  }
  if (!order.grouped())
    for (std::uint64_t row = 0; row < order.size(); ++row)
      ++counts[order.TypeOf(static_cast<Row>(row))];
  for (std::uint64_t v = delta.base_vertices(); v < delta.vertices(); ++v)
    ++counts[delta.TypeOf(static_cast<VertexId>(v))];
  const auto remove = [&](VertexId vertex) { --counts[TypeOfVertex(order, delta, vertex)]; };
  for (const VertexId vertex : parts.ids.deleted()) remove(vertex);
  if (const auto merged = delta.Merged())
    for (const VertexId vertex : merged->deleted) remove(vertex);
  return counts;
}

}  // namespace internal
}  // namespace rhizome
