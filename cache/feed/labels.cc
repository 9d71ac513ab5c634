#include "rhizome/cache/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rhizome/cache/label_arrays.h"
#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

/// A label beyond this is taken for a mistake (such as vertex ids given as labels).
constexpr std::int64_t kMaxClasses = 1 << 16;

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

Status ReadLabelArray(const GraphSnapshot& graph, const std::string& name, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkArray> array,
                           OpenLabelArray(graph, name, {DataType::kInt64, DataType::kInt32}, 1));
  labels.label.resize(graph.vertex_count(), -1);
  const bool wide = array->entry().dtype == DataType::kInt64;
  return ForEachLabelChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        return wide ? TakeLabels<std::int64_t>(name, first, bytes, labels)
                    : TakeLabels<std::int32_t>(name, first, bytes, labels);
      },
      [&](std::uint64_t row) { labels.label[row] = -1; });
}

Status ReadSplitArray(const GraphSnapshot& graph, const std::string& name, ClassLabels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ChunkArray> array,
                           OpenLabelArray(graph, name, {DataType::kUint8}, 1));
  labels.split.resize(graph.vertex_count(), Split::kNone);
  RHIZOME_RETURN_IF_ERROR(ForEachLabelChunk(
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
