#include "vertex_array.h"

#include <fmt/format.h>

#include "rhizome/storage/array_rules.h"

namespace rhizome {

bool IsEdgeArray(const ArrayEntry& entry) { return FirstDimension(entry).starts_with("edge_p"); }

Status CheckVertexArray(const ArrayEntry& entry) {
  if (!IsEdgeArray(entry)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is an attribute of edges: its rows are the edge ids of a partition, not "
                  "vertices; export writes them in that order",
                  entry.name));
}

}  // namespace rhizome
