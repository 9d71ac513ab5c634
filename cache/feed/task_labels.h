#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/labels.h"
#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/task_metrics.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Key of the task in the metadata of a model's safetensors file. If it is absent, the task is
/// multiclass.
inline constexpr const char* kTaskMetadataKey = "task";

/// Labels of every vertex for a task, in row order, and the split. Depending on the task, only one
/// of `label` (classes), `flags` and `values` is filled. Memory per vertex: 4 bytes (classes),
/// `columns` bytes (flags) or 4 * `columns` bytes (values), plus 1 byte for the split.
struct Labels : ClassLabels {
  Task task = Task::kMulticlass;
  std::size_t columns = 1;          ///< number of labels or values per vertex
  std::vector<std::uint8_t> flags;  ///< [rows, columns], multilabel: 0, 1 or kMissingFlag
  std::vector<float> values;        ///< [rows, columns], regression; NaN: missing

  /// Returns the number of scores that a model computes per vertex.
  std::int64_t outputs() const;

  /// Returns whether the vertex with this row has any known label.
  bool Has(std::size_t row) const;

  /// Returns the number of vertices of each class in a set. Only for tasks with classes.
  std::vector<std::uint64_t> CountClasses(Split set) const;
};

/// Returns the task that an array of labels serves, by its dtype and shape. int64 and int32 [rows,
/// 1] are multiclass (binary on request), uint8 [rows, C] with C > 1 is multilabel (with one
/// column, multilabel or binary, which must be requested), float32 [rows, k] is regression. Errors:
/// kInvalidArgument, the array matches no task, or not the requested one; the message states what
/// is required.
Result<Task> TaskOf(const ArrayEntry& labels, std::optional<Task> asked);

/// Returns whether ReadLabels accepts the array, which must hold one class per vertex.
bool HoldsClasses(const ArrayEntry& labels);

/// Reads the labels and the split of a task, like ReadLabels for classes. Missing labels are
/// classes below 0, flags of 255, and values of NaN. A vertex of a set must have a class. Flags and
/// values may be missing for some vertices, but not for all vertices of a set.
/// Errors: as ReadLabels and TaskOf; kInvalidArgument, naming the vertex: a class above 1 in a
/// binary task, a flag other than 0, 1 or 255, an infinite value.
Result<Labels> ReadTaskLabels(const GraphSnapshot& graph, const std::string& label_array,
                              const std::string& split_array, std::optional<Task> asked);

/// Checks the training set. Errors: kInvalidArgument, the training set of a split is empty.
Status CheckTrainingSet(std::span<const VertexId> train, const std::string& split);

}  // namespace internal
}  // namespace rhizome
