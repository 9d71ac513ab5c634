#include "cache/feed/label_arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<ChunkArray>> OpenLabelArray(const GraphSnapshot& graph,
                                                   const std::string& name,
                                                   std::initializer_list<DataType> dtypes,
                                                   std::uint64_t columns,
                                                   std::string_view purpose) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<ChunkArray> array, graph.store().OpenArray(name));
  const ArrayEntry& entry = array->entry();
  if (std::find(dtypes.begin(), dtypes.end(), entry.dtype) == dtypes.end()) {
    std::vector<std::string_view> names;
    for (const DataType dtype : dtypes) names.push_back(DataTypeName(dtype));
    return Fail(Status::InvalidArgument(
        fmt::format("array {} is {}; {} must be {}; choose another array", name,
                    DataTypeName(entry.dtype), purpose, fmt::join(names, " or "))));
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

Status CheckSplit(const GraphSnapshot& graph, const ClassLabels& labels,
                  const std::string& label_array, const std::string& split_array) {
  constexpr const char* kNames[] = {"training", "validation", "test"};
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    const Split split = labels.split[row];
    if (split == Split::kNone) continue;
    if (split > Split::kTest) {
      return Status::InvalidArgument(
          fmt::format("array {}, vertex {}: a split of {}; it must be 0 (train), 1 (valid), 2 "
                      "(test) or 255 (none)",
                      split_array, NameOfRow(graph, row), static_cast<int>(split)));
    }
    if (!labels.label.empty() && labels.label[row] < 0) {
      return Status::InvalidArgument(fmt::format(
          "array {}: vertex {} has no label (-1), but array {} puts it into the {} set; "
          "set its split to 255 (none)",
          label_array, NameOfRow(graph, row), split_array, kNames[static_cast<int>(split)]));
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
