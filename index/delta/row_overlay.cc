#include "index/delta/row_overlay.h"

#include <fmt/format.h>

#include "index/delta/type_facts.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

Result<std::size_t> RowOverlay::Split(std::span<const VertexId> vertices, std::span<std::byte> out,
                                      std::span<RowTarget> targets) const {
  const std::size_t row_bytes = array.row_bytes();
  const bool is_bound = !BoundType(array).empty();
  const auto bound = TypeNamed(delta.vertex_types(), BoundType(array));
  std::size_t count = 0;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const VertexId vertex = vertices[i];
    if (vertex < 0 || static_cast<std::uint64_t>(vertex) >= delta.vertices())
      return Fail(Status::InvalidArgument(fmt::format(
          "there is no vertex {}: the graph has {} vertices", vertex, delta.vertices())));
    if (is_bound && TypeOf(vertex) != bound) return Fail(OtherType(vertex));
    const auto to = out.subspan(i * row_bytes, row_bytes);
    const auto commit = delta.RowCommit(array.array_id, vertex);
    if (commit && !RHIZOME_MUTANT("rows that were put are forgotten")) {
      RHIZOME_RETURN_IF_ERROR(store.ReadDeltaRow(*commit, array.array_id, vertex, to));
    } else if (static_cast<std::uint64_t>(vertex) < parts.order.size()) {
      targets[count++] = {parts.order.RowOf(vertex), to.data()};
    } else {
      FillMissingRows(array, to);
    }
  }
  return count;
}

TypeId RowOverlay::TypeOf(VertexId vertex) const {
  return TypeOfVertex(parts.order, delta, vertex);
}

Status RowOverlay::OtherType(VertexId vertex) const {
  return Status::InvalidArgument(fmt::format(
      "vertex {} has the type '{}', but array '{}' has rows of the type '{}' only", vertex,
      delta.vertex_types()[TypeOf(vertex)], ShownName(array.name), BoundType(array)));
}

Status CheckRowRequest(const ArrayEntry& array, const GenerationInfo& info, std::size_t vertices,
                       std::size_t out_bytes) {
  if (FirstDimension(array) != "row" || array.rows != info.vertices)
    return Status::InvalidArgument(
        fmt::format("array '{}' does not have a row for each vertex", ShownName(array.name)));
  if (out_bytes == vertices * array.row_bytes()) return Status::Ok();
  return Status::InvalidArgument(fmt::format("the buffer has {} bytes for {} rows of {} bytes",
                                             out_bytes, vertices, array.row_bytes()));
}

}  // namespace internal
}  // namespace rhizome
