#include "gnn/train/best_model.h"

#include <fmt/format.h>

#include "cache/feed/class_names.h"
#include "cache/feed/task_labels.h"
#include "cache/job/safetensors.h"
#include "gnn/models/recorded_direction.h"
#include "gnn/train/schedule.h"

namespace rhizome {
inline namespace internal {

bool BestModel::IsBetter(const BestEpoch& epoch) const {
  if (epoch.value.has_value() != best_->value.has_value()) return epoch.value.has_value();
  if (!epoch.value || *epoch.value == *best_->value) return epoch.loss < best_->loss;
  return Improvement{.larger = LargerIsBetter(monitor_)}.Is(*epoch.value, *best_->value);
}

Status BestModel::Offer(const BestEpoch& epoch, const Model& model) {
  if (best_ && best_->seed == epoch.seed && best_->epoch == epoch.epoch) return Status::Ok();
  if (best_ && best_->seed != epoch.seed && !IsBetter(epoch)) return Status::Ok();
  best_ = epoch;
  if (out_.empty()) return Status::Ok();
  TensorFile file = model.ToFile();
  file.metadata.insert(metadata_.begin(), metadata_.end());
  if (task_ != Task::kMulticlass) file.metadata[kTaskMetadataKey] = TaskName(task_);
  SetDirection(direction_, file);
  SetClassNames(classes_, file);
  return SaveSafetensors(out_, file);
}

Status BestModel::Explain(const Status& status) const {
  if (status.code() != StatusCode::kInterrupted || out_.empty() || !best_) return status;
  return Status::Interrupted(fmt::format(
      "interrupted; {} has the weights of the best epoch so far, {}", out_.string(), best_->epoch));
}

}  // namespace internal
}  // namespace rhizome
