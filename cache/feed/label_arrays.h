#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/feed/labels.h"
#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {

/// Opens an array with one row per vertex and `columns` columns (0: any number). `purpose` names
/// its use in error messages. Errors: kNotFound; kInvalidArgument, a different shape, or a dtype
/// that is not in `dtypes`.
Result<std::unique_ptr<ChunkArray>> OpenLabelArray(const GraphSnapshot& graph,
                                                   const std::string& name,
                                                   std::initializer_list<DataType> dtypes,
                                                   std::uint64_t columns,
                                                   std::string_view purpose = "labels");

/// Returns the external id of the vertex with this row as text, for messages.
std::string NameOfRow(const GraphSnapshot& graph, std::uint64_t row);

/// Checks the split values and, if labels were read, that every vertex of a set has a label.
/// Errors: kInvalidArgument, naming the array and the vertex.
Status CheckSplit(const GraphSnapshot& graph, const ClassLabels& labels,
                  const std::string& label_array, const std::string& split);

/// Calls clear(row) for each row for which the array records that no value was given (RowsGiven).
/// Older versions of the library stored zeros there, which would mean class 0.
template <typename Clear>
void ForEachNeverGiven(const ArrayEntry& array, const GraphSnapshot& graph, Clear clear) {
  const auto given = static_cast<VertexId>(RowsGiven(array));
  if (given >= static_cast<VertexId>(array.rows)) return;
  for (std::uint64_t row = 0; row < array.rows; ++row)
    if (*graph.VertexAt(static_cast<Row>(row)) >= given) clear(row);
}

/// Calls use(first row, bytes) for each chunk of an array, then clear(row) for each row that was
/// never given, then use for each row that was put since the generation.
template <typename Use, typename Clear>
Status ForEachLabelChunk(const ChunkArray& array, const GraphSnapshot& graph, Use use,
                         Clear clear) {
  const ArrayEntry& entry = array.entry();
  std::vector<std::byte> bytes;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    bytes.resize(array.RowsInChunk(chunk) * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(array.ReadChunk(chunk, bytes));
    RHIZOME_RETURN_IF_ERROR(use(chunk * entry.chunk_rows, std::span<const std::byte>(bytes)));
  }
  ForEachNeverGiven(entry, graph, clear);
  const auto delta = DeltaRows::Of(graph.Snapshot(), entry);
  if (delta == nullptr) return Status::Ok();
  bytes.resize(entry.row_bytes());
  for (std::uint64_t row = 0; row < delta->rows(); ++row) {
    if (!delta->WasPut(static_cast<Row>(row))) continue;
    RHIZOME_RETURN_IF_ERROR(delta->Read(static_cast<Row>(row), bytes));
    RHIZOME_RETURN_IF_ERROR(use(row, std::span<const std::byte>(bytes)));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
