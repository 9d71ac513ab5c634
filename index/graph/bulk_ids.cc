#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/type_facts.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/exceptions.h"

namespace rhizome {
namespace {

Status CheckSameLength(std::size_t in, std::size_t out) {
  if (in == out) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("the input has {} ids, but the output holds {}", in, out));
}

/// Look-ups in random order miss the processor's caches, so this many ids are prefetched ahead.
constexpr std::size_t kIdsAhead = 16;

/// Sets out[i] = map(in[i]) for numbers in [0, bound). `ahead` receives each number kIdsAhead
/// positions earlier, for prefetching.
template <typename Out, typename Map, typename Ahead>
Status MapAll(std::string_view what, std::span<const std::int64_t> in, std::span<Out> out,
              std::uint64_t bound, Map map, Ahead ahead) {
  RHIZOME_RETURN_IF_ERROR(CheckSameLength(in.size(), out.size()));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i + kIdsAhead < in.size()) ahead(in[i + kIdsAhead]);
    if (static_cast<std::uint64_t>(in[i]) >= bound)
      return Status::InvalidArgument(
          fmt::format("there is no {} {}: the graph has {} vertices", what, in[i], bound));
    out[i] = map(in[i]);
  }
  return Status::Ok();
}

template <typename Out, typename Map>
Status MapAll(std::string_view what, std::span<const std::int64_t> in, std::span<Out> out,
              std::uint64_t bound, Map map) {
  return MapAll(what, in, out, bound, map, [](std::int64_t) {});
}

}  // namespace

Status VerticesAt(const Graph& graph, std::span<const Row> rows, std::span<VertexId> out) try {
  const auto fixed = graph.Snapshot();
  const auto parts = fixed->parts();
  return MapAll(
      "row", rows, out, fixed->vertex_count(), [&](Row row) { return parts->VertexAt(row); },
      [&](Row row) { parts->order.PrefetchVertexAt(row); });
} catch (...) {
  return StatusOfException();
}

Status RowsOf(const Graph& graph, std::span<const VertexId> vertices, std::span<Row> out) try {
  const auto fixed = graph.Snapshot();
  const auto parts = fixed->parts();
  return MapAll("vertex", vertices, out, fixed->vertex_count(),
                [&](VertexId vertex) { return parts->RowOf(vertex); });
} catch (...) {
  return StatusOfException();
}

Status TypesOf(const Graph& graph, std::span<const VertexId> vertices, std::span<TypeId> out) try {
  const auto fixed = graph.Snapshot();
  const auto parts = fixed->parts();
  const auto delta = fixed->delta();
  return MapAll("vertex", vertices, out, fixed->vertex_count(),
                [&](VertexId vertex) { return TypeOfVertex(parts->order, *delta, vertex); });
} catch (...) {
  return StatusOfException();
}

Status FindAll(const Graph& graph, const IdSpan& ids, std::span<VertexId> out) try {
  RHIZOME_RETURN_IF_ERROR(CheckSameLength(ids.size(), out.size()));
  const auto fixed = graph.Snapshot();
  for (std::size_t i = 0; i < ids.integers.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(out[i], fixed->Find(ids.integers[i]));
  }
  for (std::size_t i = 0; i < ids.texts.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(out[ids.integers.size() + i], fixed->FindText(ids.texts[i]));
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<ExternalIds> ExternalIdsOf(const Graph& graph, std::span<const VertexId> vertices) try {
  const auto fixed = graph.Snapshot();
  ExternalIds ids;
  const bool texts = fixed->info().id_kind == ExternalIdKind::kString;
  if (texts)
    ids.texts.reserve(vertices.size());
  else
    ids.integers.reserve(vertices.size());
  for (const VertexId vertex : vertices) {
    RHIZOME_ASSIGN_OR_RETURN(ExternalId id, fixed->ExternalIdOf(vertex));
    if (texts)
      ids.texts.push_back(ToString(id));
    else
      ids.integers.push_back(*std::get_if<std::int64_t>(&id));
  }
  return ids;
} catch (...) {
  return Fail(StatusOfException());
}

EdgeNumbering::EdgeNumbering(const GraphSnapshot& graph) : first_(1, 0) {
  for (const Adjacency& partition : graph.parts()->partitions)
    first_.push_back(first_.back() + partition.edge_count());
}

Result<EdgeId> EdgeNumbering::At(std::int64_t number) const {
  if (number < 0) return Fail(Status::InvalidArgument(fmt::format("there is no edge {}", number)));
  const auto at = static_cast<std::uint64_t>(number);
  const auto after = std::upper_bound(first_.begin(), first_.end(), at);
  const auto partition = static_cast<std::size_t>(after - first_.begin()) - 1;
  return EdgeId{static_cast<PartitionId>(partition), at - first_[partition]};
}

}  // namespace rhizome
