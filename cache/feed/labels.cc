#include "rhizome/cache/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rhizome/index/delta_rows.h"
#include "rhizome/storage/array_versions.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

/// A label beyond this is taken for a mistake (such as vertex ids given as labels).
constexpr std::int64_t kMaxClasses = 1 << 16;

/// Opens an array with one column and one row for each vertex.
Result<std::unique_ptr<ChunkArray>> OpenColumn(const GraphSnapshot& graph, const std::string& name,
                                               std::initializer_list<DataType> dtypes) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<ChunkArray> array, graph.store().OpenArray(name));
  const ArrayEntry& entry = array->entry();
  if (std::find(dtypes.begin(), dtypes.end(), entry.dtype) == dtypes.end()) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} is {}; labels must be int64 or int32, splits uint8", name,
                    DataTypeName(entry.dtype))));
  }
  if (entry.dim != 1 || entry.rows != graph.info().vertices) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} has shape [{}, {}]; it must have one value for each of {} vertices",
                    name, entry.rows, entry.dim, graph.info().vertices)));
  }
  return array;
}

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
Status ForEachChunk(const ChunkArray& array, const GraphSnapshot& graph, Use use, Clear clear) {
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

template <typename T>
Status TakeLabels(std::string_view name, std::uint64_t first, std::span<const std::byte> bytes,
                  ClassLabels& labels) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (value < -1 || value >= kMaxClasses) {
      return Status::InvalidArgument(fmt::format("array {}, row {}: label {} is not in [-1, {})",
                                                 name, first + i, value, kMaxClasses));
    }
    labels.label[first + i] = static_cast<std::int32_t>(value);
    labels.classes = std::max<std::int64_t>(labels.classes, value + 1);
  }
  return Status::Ok();
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
      const VertexId vertex = *graph.VertexAt(static_cast<Row>(row));
      return Status::InvalidArgument(
          fmt::format("vertex {} is in the {} set but has no label (-1); set its split to none",
                      ToString(*graph.ExternalIdOf(vertex)), kNames[static_cast<int>(split)]));
    }
  }
  return Status::Ok();
}

Status ReadLabelArray(const GraphSnapshot& graph, const std::string& name, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkArray> array,
                           OpenColumn(graph, name, {DataType::kInt64, DataType::kInt32}));
  labels.label.resize(graph.vertex_count(), -1);
  const bool wide = array->entry().dtype == DataType::kInt64;
  return ForEachChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        return wide ? TakeLabels<std::int64_t>(name, first, bytes, labels)
                    : TakeLabels<std::int32_t>(name, first, bytes, labels);
      },
      [&](std::uint64_t row) { labels.label[row] = -1; });
}

Status ReadSplitArray(const GraphSnapshot& graph, const std::string& name, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkArray> array,
                           OpenColumn(graph, name, {DataType::kUint8}));
  labels.split.resize(graph.vertex_count(), Split::kNone);
  RHIZOME_RETURN_IF_ERROR(ForEachChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        std::memcpy(labels.split.data() + first, bytes.data(), bytes.size());
        return Status::Ok();
      },
      [&](std::uint64_t row) { labels.split[row] = Split::kNone; }));
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    if (graph.IsDeleted(*graph.VertexAt(static_cast<Row>(row)))) labels.split[row] = Split::kNone;
  }
  return Status::Ok();
}

}  // namespace

std::vector<VertexId> ClassLabels::Members(const GraphSnapshot& graph, Split set) const {
  std::vector<VertexId> members;
  for (std::size_t row = 0; row < split.size(); ++row) {
    if (split[row] == set) members.push_back(*graph.VertexAt(static_cast<Row>(row)));
  }
  std::sort(members.begin(), members.end());
  RHIZOME_DCHECK(std::adjacent_find(members.begin(), members.end()) == members.end());  // each once
  return members;
}

Result<ClassLabels> ReadLabels(const GraphSnapshot& graph, const std::string& label_array,
                               const std::string& split_array) {
  ClassLabels labels;
  if (!label_array.empty()) RHIZOME_RETURN_IF_ERROR(ReadLabelArray(graph, label_array, labels));
  if (!split_array.empty()) RHIZOME_RETURN_IF_ERROR(ReadSplitArray(graph, split_array, labels));
  RHIZOME_RETURN_IF_ERROR(CheckSplit(graph, labels));
  return labels;
}

void AccuracyCounts::Add(Split set, bool is_correct) {
  if (set > Split::kTest) return;
  ++total[static_cast<std::size_t>(set)];
  correct[static_cast<std::size_t>(set)] += is_correct ? 1 : 0;
}

void AccuracyCounts::Add(const AccuracyCounts& other) {
  for (std::size_t i = 0; i < total.size(); ++i) {
    correct[i] += other.correct[i];
    total[i] += other.total[i];
  }
}

double AccuracyCounts::Share(Split set) const {
  const auto i = static_cast<std::size_t>(set);
  return total[i] == 0 ? 0 : static_cast<double>(correct[i]) / static_cast<double>(total[i]);
}

}  // namespace rhizome
