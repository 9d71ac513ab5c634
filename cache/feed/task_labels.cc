#include "cache/feed/task_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "cache/feed/compute_metrics.h"
#include "cache/feed/feature_decoder.h"
#include "cache/feed/label_arrays.h"

namespace rhizome {
inline namespace internal {
namespace {

Status WrongLabel(const GraphSnapshot& graph, const std::string& array, std::uint64_t row,
                  std::string_view what) {
  return Status::InvalidArgument(
      fmt::format("array {}, vertex {}: {}", array, NameOfRow(graph, row), what));
}

/// Checks that integer labels of a binary task are 0, 1 or missing.
Status CheckClasses(const GraphSnapshot& graph, const std::string& array, const Labels& labels) {
  for (std::size_t row = 0; row < labels.label.size(); ++row) {
    if (labels.label[row] > 1) {
      return WrongLabel(graph, array, row,
                        fmt::format("label {}; labels of a binary task must be 0, 1 or -1 "
                                    "(missing); for more classes use `task=multiclass`",
                                    labels.label[row]));
    }
  }
  return Status::Ok();
}

Status ReadFlags(const GraphSnapshot& graph, const std::string& name, Labels& labels) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array,
                           OpenLabelArray(graph, name, {DataType::kUint8, DataType::kBool}, 0));
  labels.columns = array->entry().dim;
  const std::size_t columns = labels.columns;
  labels.flags.resize(graph.vertex_count() * columns, kMissingFlag);
  RHIZOME_RETURN_IF_ERROR(ForEachLabelChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        std::memcpy(labels.flags.data() + first * columns, bytes.data(), bytes.size());
        return Status::Ok();
      },
      [&](std::uint64_t row) {
        std::fill_n(labels.flags.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                    kMissingFlag);
      }));
  for (std::size_t at = 0; at < labels.flags.size(); ++at) {
    const std::uint8_t flag = labels.flags[at];
    if (flag <= 1 || flag == kMissingFlag) continue;
    return WrongLabel(
        graph, name, at / columns,
        fmt::format("column {} is {}; it must be 0, 1 or 255 (missing)", at % columns, flag));
  }
  return Status::Ok();
}

/// Converts the single column of flags of a binary task to classes.
void MakeClasses(Labels& labels) {
  labels.label.reserve(labels.flags.size());
  for (const std::uint8_t flag : labels.flags)
    labels.label.push_back(flag == kMissingFlag ? -1 : flag);
  labels.flags = {};
}

Status ReadNumbers(const GraphSnapshot& graph, const std::string& name, Labels& labels) {
  constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
  RHIZOME_ASSIGN_OR_RETURN(
      const auto array, OpenLabelArray(graph, name, {DataType::kFloat32, DataType::kFloat64}, 0));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(array->entry(), /*normalize=*/false));
  labels.columns = array->entry().dim;
  const std::size_t columns = labels.columns;
  labels.values.resize(graph.vertex_count() * columns, kMissing);
  RHIZOME_RETURN_IF_ERROR(ForEachLabelChunk(
      *array, graph,
      [&](std::uint64_t first, std::span<const std::byte> bytes) {
        const std::size_t count = bytes.size() / DataTypeBytes(array->entry().dtype);
        decoder.Decode(bytes, std::span(labels.values).subspan(first * columns, count));
        return Status::Ok();
      },
      [&](std::uint64_t row) {
        std::fill_n(labels.values.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                    kMissing);
      }));
  for (std::size_t at = 0; at < labels.values.size(); ++at) {
    if (!std::isinf(labels.values[at])) continue;
    return WrongLabel(graph, name, at / columns,
                      fmt::format("column {} is infinite; NaN means missing", at % columns));
  }
  return Status::Ok();
}

/// Checks that each non-empty set has a known label. A set without one can be neither trained on
/// nor measured.
Status CheckSets(const std::string& name, const Labels& labels) {
  constexpr std::array kNames = {"training", "validation", "test"};
  std::array<std::uint64_t, 3> members{}, known{};
  for (std::size_t row = 0; row < labels.split.size(); ++row) {
    const auto set = static_cast<std::size_t>(labels.split[row]);
    if (set >= members.size()) continue;
    ++members[set];
    known[set] += labels.Has(row) ? 1 : 0;
  }
  for (std::size_t set = 0; set < members.size(); ++set) {
    if (members[set] == 0 || known[set] > 0) continue;
    return Status::InvalidArgument(fmt::format(
        "array {}: all labels of the {} set are missing; set the split of such vertices to none",
        name, kNames[set]));
  }
  return Status::Ok();
}

Status ReadTargets(const GraphSnapshot& graph, const std::string& name, bool flags,
                   Labels& labels) {
  if (labels.task == Task::kRegression) return ReadNumbers(graph, name, labels);
  if (flags) {
    RHIZOME_RETURN_IF_ERROR(ReadFlags(graph, name, labels));
    if (labels.task == Task::kBinary) MakeClasses(labels);
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(ClassLabels classes, ReadLabels(graph, name, ""));
  labels.label = std::move(classes.label);
  labels.classes = classes.classes;
  return labels.task == Task::kBinary ? CheckClasses(graph, name, labels) : Status::Ok();
}

}  // namespace

std::int64_t Labels::outputs() const {
  if (task == Task::kMulticlass) return classes;
  return task == Task::kBinary ? 1 : static_cast<std::int64_t>(columns);
}

bool Labels::Has(std::size_t row) const {
  if (!label.empty()) return label[row] >= 0;
  for (std::size_t at = row * columns; at < (row + 1) * columns; ++at) {
    if (flags.empty() ? !std::isnan(values[at]) : flags[at] != kMissingFlag) return true;
  }
  return false;
}

std::vector<std::uint64_t> Labels::CountClasses(Split set) const {
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(classes), 0);
  for (std::size_t row = 0; row < label.size(); ++row) {
    if (split[row] == set) ++counts[static_cast<std::size_t>(label[row])];
  }
  return counts;
}

bool HoldsClasses(const ArrayEntry& labels) {
  return labels.dim == 1 && (labels.dtype == DataType::kInt64 || labels.dtype == DataType::kInt32 ||
                             labels.dtype == DataType::kInt16 || labels.dtype == DataType::kInt8);
}

namespace {

bool HoldsFlags(const ArrayEntry& labels) {
  return labels.dtype == DataType::kUint8 || labels.dtype == DataType::kBool;
}

}  // namespace

Result<Task> TaskOf(const ArrayEntry& labels, std::optional<Task> asked) {
  const bool flags = HoldsFlags(labels);
  std::vector<Task> possible;
  if (HoldsClasses(labels)) possible = {Task::kMulticlass, Task::kBinary};
  if (flags && labels.dim > 1) possible = {Task::kMultilabel};
  if (flags && labels.dim == 1) possible = {Task::kBinary, Task::kMultilabel};
  const bool numbers = labels.dtype == DataType::kFloat32 || labels.dtype == DataType::kFloat64;
  if (numbers) possible = {Task::kRegression};
  const bool unclear = flags && labels.dim == 1 && !asked;
  const Task task = asked.value_or(possible.empty() ? Task::kMulticlass : possible.front());
  if (!unclear && std::find(possible.begin(), possible.end(), task) != possible.end()) return task;
  return Fail(Status::InvalidArgument(fmt::format(
      "array {} is {} of shape [{}, {}]{}: multiclass needs signed integers with one column, "
      "binary needs these (0, 1, -1 for missing), uint8 or bool with one column, multilabel needs "
      "uint8 (0, 1, 255 for missing) or bool, regression needs float32 or float64; change "
      "`labels` or `task`",
      labels.name, DataTypeName(labels.dtype), labels.rows, labels.dim,
      asked ? fmt::format(", which is not for the task {}", TaskName(task)) : "")));
}

// Steps: (1) determine the task from the array and the request; (2) for multiclass, read classes
// and split together and return; (3) otherwise read the labels in the form of the task (flags,
// values or classes); (4) read the split; (5) check that each set has known labels.
Result<Labels> ReadTaskLabels(const GraphSnapshot& graph, const std::string& label_array,
                              const std::string& split_array, std::optional<Task> asked) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(label_array));
  Labels labels;
  RHIZOME_ASSIGN_OR_RETURN(labels.task, TaskOf(array->entry(), asked));
  if (labels.task == Task::kMulticlass) {
    // Reads both arrays at once, so that the error names a vertex that is in a set and has no
    // class.
    RHIZOME_ASSIGN_OR_RETURN(static_cast<ClassLabels&>(labels),
                             ReadLabels(graph, label_array, split_array));
    return labels;
  }
  const bool flags = HoldsFlags(array->entry());
  RHIZOME_RETURN_IF_ERROR(ReadTargets(graph, label_array, flags, labels));
  RHIZOME_ASSIGN_OR_RETURN(ClassLabels sets, ReadLabels(graph, "", split_array));
  labels.split = std::move(sets.split);
  if (labels.task == Task::kBinary) {
    labels.classes = 2;
    RHIZOME_RETURN_IF_ERROR(CheckSplit(graph, labels, label_array, split_array));
  }
  RHIZOME_RETURN_IF_ERROR(CheckSets(label_array, labels));
  return labels;
}

Status CheckTrainingSet(std::span<const VertexId> train, const std::string& split) {
  if (!train.empty()) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("array {} puts no vertex into the training set (value 0)", split));
}

}  // namespace internal
}  // namespace rhizome
