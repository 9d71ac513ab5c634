#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/models/model.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/task_metrics.h"

namespace rhizome {
inline namespace internal {

/// The best epoch of a training run.
struct BestEpoch {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;      ///< 1-based
  std::optional<double> value;  ///< of the monitored metric; nullopt: not measured
  double loss = 0;              ///< on the validation set; if not measured, on the training set
};

/// The model file of a job of one or more training runs. It always holds the best model so far.
/// Threads: one at a time.
class BestModel {
 public:
  /// If `out` is empty, no file is written. `direction`: the lists of the training. `classes` are
  /// the names of the classes, or empty. `metadata`: further entries of the file's metadata.
  BestModel(Path out, Task task, Metric monitor, Direction direction = Direction::kIn,
            std::vector<std::string> classes = {}, std::map<std::string, std::string> metadata = {})
      : out_(std::move(out)),
        task_(task),
        monitor_(monitor),
        direction_(direction),
        classes_(std::move(classes)),
        metadata_(std::move(metadata)) {}

  /// Writes the model atomically if it is better than the models of other seeds, or a later epoch
  /// of the seed that wrote the file. The file's metadata names the task (kTaskMetadataKey), except
  /// for multiclass, the direction (kDirectionMetadataKey), and the classes if they have names.
  /// Errors: as SaveSafetensors.
  Status Offer(const BestEpoch& epoch, const Model& model);

  /// Returns the best epoch so far; nullopt before the first offer.
  const std::optional<BestEpoch>& best() const { return best_; }

  /// Returns `status`; if it is kInterrupted, with a message that names the model on disk.
  Status Explain(const Status& status) const;

 private:
  bool IsBetter(const BestEpoch& epoch) const;

  const Path out_;
  const Task task_;
  const Metric monitor_;
  const Direction direction_;
  const std::vector<std::string> classes_;
  const std::map<std::string, std::string> metadata_;
  std::optional<BestEpoch> best_;
};

}  // namespace internal
}  // namespace rhizome
