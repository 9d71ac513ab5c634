#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/index/delta_rows.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/array_versions.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome::inline internal {

/// Opens an array with one row for each vertex, `columns` wide (0: any width); `purpose` is what it
/// is asked for, in words. Errors: kNotFound; kInvalidArgument, another shape, or a dtype that is
/// not one of `dtypes`.
Result<std::unique_ptr<ChunkArray>> OpenLabelArray(const GraphSnapshot& graph,
                                                   const std::string& name,
                                                   std::initializer_list<DataType> dtypes,
                                                   std::uint64_t columns,
                                                   std::string_view purpose = "labels");

/// The external id of the vertex with a row, as text, for messages.
std::string NameOfRow(const GraphSnapshot& graph, std::uint64_t row);

/// Checks the split, and that every vertex of a set has a label where labels were read. Errors:
/// kInvalidArgument, naming the array and the vertex.
Status CheckSplit(const GraphSnapshot& graph, const ClassLabels& labels,
                  const std::string& label_array, const std::string& split);

/// Calls clear(row) for each row that the array says was never given (RowsGiven): older versions of
/// the library left zeros there, which would be class 0.
template <typename Clear>
void ForEachNeverGiven(const ArrayEntry& array, const GraphSnapshot& graph, Clear clear) {
  const auto given = static_cast<VertexId>(RowsGiven(array));
  if (given >= static_cast<VertexId>(array.rows)) return;
  for (std::uint64_t row = 0; row < array.rows; ++row)
    if (*graph.VertexAt(static_cast<Row>(row)) >= given) clear(row);
}

/// Calls use(first row, bytes) for each chunk of an array, clear(row) for each that was never
/// given, then use for each row that was put since.
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

}  // namespace rhizome::inline internal
