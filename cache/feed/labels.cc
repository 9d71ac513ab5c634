#include "cache/feed/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "cache/feed/label_arrays.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_facts.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Labels above this are rejected as a mistake (such as vertex ids given as labels).
constexpr std::int64_t kMaxClasses = 1 << 16;

template <typename T>
Status TakeLabels(const GraphSnapshot& graph, std::string_view name, std::uint64_t first,
                  std::span<const std::byte> bytes, std::optional<std::int64_t> null,
                  ClassLabels& labels) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (value == null) value = -1;
    if (value < -1 || value >= kMaxClasses) {
      return Status::InvalidArgument(fmt::format(
          "array {}, vertex {}: label {}; classes must be numbers from 0 to {}, and -1 means none",
          name, NameOfRow(graph, first + i), value, kMaxClasses - 1));
    }
    labels.label[first + i] = static_cast<std::int32_t>(value);
    labels.classes = std::max<std::int64_t>(labels.classes, value + 1);
  }
  return Status::Ok();
}

Status ReadLabelArray(const GraphSnapshot& graph, const std::string& name, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChunkArray> array,
      OpenLabelArray(graph, name,
                     {DataType::kInt64, DataType::kInt32, DataType::kInt16, DataType::kInt8}, 1));
  labels.label.resize(graph.vertex_count(), -1);
  const DataType dtype = array->entry().dtype;
  const auto null = NullOf(array->entry().attributes);
  return ForEachLabelChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        if (dtype == DataType::kInt64)
          return TakeLabels<std::int64_t>(graph, name, first, bytes, null, labels);
        if (dtype == DataType::kInt32)
          return TakeLabels<std::int32_t>(graph, name, first, bytes, null, labels);
        if (dtype == DataType::kInt16)
          return TakeLabels<std::int16_t>(graph, name, first, bytes, null, labels);
        return TakeLabels<std::int8_t>(graph, name, first, bytes, null, labels);
      },
      [&](std::uint64_t row) { labels.label[row] = -1; });
}

/// Checks that the column of a split reference exists. A reference without a column requires an
/// array with one column.
Status CheckSplitColumn(const SplitReference& split, const ArrayEntry& array) {
  if (!split.column && array.dim == 1) return Status::Ok();
  if (split.column && *split.column < array.dim) return Status::Ok();
  const std::string there =
      array.dim == 1 ? "one column, 0" : fmt::format("columns 0 to {}", array.dim - 1);
  return Status::InvalidArgument(
      split.column
          ? fmt::format("array {} has no column {}; it has {}", split.array, *split.column, there)
          : fmt::format("array {} has {} columns of splits; choose one with `split={}:K`, K from 0",
                        split.array, array.dim, split.array));
}

Status ReadSplitArray(const GraphSnapshot& graph, const std::string& text, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const SplitReference split, ParseSplitReference(text));
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChunkArray> array,
      OpenLabelArray(graph, split.array, {DataType::kUint8}, 0, "a split (`split`)"));
  RHIZOME_RETURN_IF_ERROR(CheckSplitColumn(split, array->entry()));
  const std::uint64_t columns = array->entry().dim, column = split.column.value_or(0);
  labels.split.resize(graph.vertex_count(), Split::kNone);
  RHIZOME_RETURN_IF_ERROR(ForEachLabelChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        for (std::uint64_t i = 0; i * columns < bytes.size(); ++i)
          labels.split[first + i] = static_cast<Split>(bytes[i * columns + column]);
        return Status::Ok();
      },
      [&](std::uint64_t row) { labels.split[row] = Split::kNone; }));
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    if (graph.IsDeleted(*graph.VertexAt(static_cast<Row>(row)))) labels.split[row] = Split::kNone;
  }
  return Status::Ok();
}

}  // namespace

Result<SplitReference> ParseSplitReference(const std::string& text) {
  const std::size_t colon = text.find(':');
  SplitReference split{.array = text.substr(0, colon)};
  if (colon == text.npos) return split;
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  std::uint64_t column = 0;
  const auto [stop, error] = std::from_chars(begin, end, column);
  if (error != std::errc() || stop != end || split.array.empty()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "the split '{}' is neither an array nor NAME:K with the number K of a column, from 0",
        text)));
  }
  split.column = column;
  return split;
}

std::vector<VertexId> ClassLabels::Members(const GraphSnapshot& graph, Split set) const {
  std::vector<VertexId> members;
  for (std::size_t row = 0; row < split.size(); ++row) {
    if (split[row] == set) members.push_back(*graph.VertexAt(static_cast<Row>(row)));
  }
  std::sort(members.begin(), members.end());
  RHIZOME_DCHECK(std::adjacent_find(members.begin(), members.end()) == members.end());  // distinct
  return members;
}

Result<ClassLabels> ReadLabels(const GraphSnapshot& graph, const std::string& label_array,
                               const std::string& split) {
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a table of all labels"));
  ClassLabels labels;
  if (!label_array.empty()) RHIZOME_RETURN_IF_ERROR(ReadLabelArray(graph, label_array, labels));
  if (!split.empty()) RHIZOME_RETURN_IF_ERROR(ReadSplitArray(graph, split, labels));
  RHIZOME_RETURN_IF_ERROR(CheckSplit(graph, labels, label_array, split));
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

}  // namespace internal
}  // namespace rhizome
