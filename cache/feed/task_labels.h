#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/cache/task_metrics.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The key of the task in the metadata of a model's safetensors file; absent: multiclass.
inline constexpr const char* kTaskMetadataKey = "task";

/// The labels that a task wants of every vertex, in row order, and the split. Of `label` (classes),
/// `flags` and `values` only the task's own is filled; memory: 4 bytes a vertex, 1 or 4 times
/// `columns`, and 1 for the split.
struct Labels : ClassLabels {
  Task task = Task::kMulticlass;
  std::size_t columns = 1;          ///< labels or numbers of a vertex
  std::vector<std::uint8_t> flags;  ///< [rows, columns], multilabel: 0, 1 or kMissingFlag
  std::vector<float> values;        ///< [rows, columns], regression; NaN: missing

  /// The scores that a network gives a vertex.
  std::int64_t outputs() const;

  /// Whether anything is known of the vertex with this row.
  bool Has(std::size_t row) const;

  /// The number of vertices of each class in a set. Of tasks with classes.
  std::vector<std::uint64_t> CountClasses(Split set) const;
};

/// The task that an array of labels is for, by its dtype and shape: int64 and int32 [rows, 1] are
/// multiclass (or binary, if asked for), uint8 [rows, C] with C > 1 multilabel (with one column: if
/// multilabel or binary is asked for), float32 [rows, k] regression. Errors: kInvalidArgument, the
/// array is none of these, or not for the task that is asked for; the message says what is needed.
Result<Task> TaskOf(const ArrayEntry& labels, std::optional<Task> asked);

/// Whether ReadLabels takes the array: classes, one a vertex.
bool HoldsClasses(const ArrayEntry& labels);

/// Reads the labels and the split of a task, as ReadLabels reads those of classes. Missing are: a
/// class below 0 and, of several labels or numbers, 255 and NaN. A vertex of a set must have a
/// class; of several labels or numbers some may be missing, but not all of a set.
/// Errors: those of ReadLabels and TaskOf; kInvalidArgument, naming the vertex, a class of a binary
/// task above 1, a flag that is not 0, 1 or 255, an infinite number.
Result<Labels> ReadTaskLabels(const GraphSnapshot& graph, const std::string& label_array,
                              const std::string& split_array, std::optional<Task> asked);

/// Errors: kInvalidArgument, the training set of a split is empty.
Status CheckTrainingSet(std::span<const VertexId> train, const std::string& split);

}  // namespace internal
}  // namespace rhizome
