#include "rhizome/cache/label_arrays.h"

#include <fmt/format.h>

#include <algorithm>

namespace rhizome::inline internal {

Result<std::unique_ptr<ChunkArray>> OpenLabelArray(const GraphSnapshot& graph,
                                                   const std::string& name,
                                                   std::initializer_list<DataType> dtypes,
                                                   std::uint64_t columns) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<ChunkArray> array, graph.store().OpenArray(name));
  const ArrayEntry& entry = array->entry();
  if (std::find(dtypes.begin(), dtypes.end(), entry.dtype) == dtypes.end()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "array {} is {}; labels must be int64 or int32 (classes), uint8 (several labels a vertex) "
        "or float32 (regression), splits uint8",
        name, DataTypeName(entry.dtype))));
  }
  const std::uint64_t vertices = graph.info().vertices;
  if (entry.rows != vertices || (columns > 0 && entry.dim != columns)) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} has shape [{}, {}]; it must have {} for each of {} vertices", name,
                    entry.rows, entry.dim, columns == 1 ? "one value" : "a row", vertices)));
  }
  return array;
}

std::string NameOfRow(const GraphSnapshot& graph, std::uint64_t row) {
  const VertexId vertex = *graph.VertexAt(static_cast<Row>(row));
  return ToString(*graph.ExternalIdOf(vertex));
}

Status CheckSplit(const GraphSnapshot& graph, const ClassLabels& labels) {
  constexpr const char* kNames[] = {"training", "validation", "test"};
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    const Split split = labels.split[row];
    if (split == Split::kNone) continue;
    if (split > Split::kTest) {
      return Status::InvalidArgument(
          fmt::format("split of row {} is {}; 0 (train), 1 (valid), 2 (test) and 255 (none) mean "
                      "something",
                      row, static_cast<int>(split)));
    }
    if (!labels.label.empty() && labels.label[row] < 0) {
      return Status::InvalidArgument(
          fmt::format("vertex {} is in the {} set but has no label (-1); set its split to none",
                      NameOfRow(graph, row), kNames[static_cast<int>(split)]));
    }
  }
  return Status::Ok();
}

}  // namespace rhizome::inline internal
