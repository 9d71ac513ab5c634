#include "vertex_array.h"

#include <fmt/format.h>

#include "rhizome/storage/array_rules.h"

namespace rhizome {

Status CheckVertexArray(const ArrayEntry& entry) {
  if (!IsOfEdges(entry)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is an attribute of edges: its rows are the edge ids of a partition, not "
                  "vertices; export writes them in that order",
                  entry.name));
}

}  // namespace rhizome
