#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rhizome/cache/task_metrics.h"
#include "rhizome/gnn/model.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The best epoch of a training.
struct BestEpoch {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;      ///< 1-based
  std::optional<double> value;  ///< of the monitored metric; nothing: not measured
  double loss = 0;              ///< of the validation set; not measured: of the training set
};

/// The model file of a job of one or more trainings: it always holds the best model so far.
/// Threads: one at a time.
class BestModel {
 public:
  /// `out` empty: nothing is written.
  BestModel(Path out, Task task, Metric monitor)
      : out_(std::move(out)), task_(task), monitor_(monitor) {}

  /// Writes the model, atomically, if it is better than that of other trainings, or a later offer
  /// of the same one; its metadata tell the task (kTaskMetadataKey). Errors: those of
  /// SaveSafetensors.
  Status Offer(const BestEpoch& epoch, const Model& model);

  /// The best so far; nothing: none was offered.
  const std::optional<BestEpoch>& best() const { return best_; }

  /// Adds to kInterrupted what is on disk now.
  Status Explain(const Status& status) const;

 private:
  bool IsBetter(const BestEpoch& epoch) const;

  const Path out_;
  const Task task_;
  const Metric monitor_;
  std::optional<BestEpoch> best_;
};

}  // namespace rhizome::inline internal
