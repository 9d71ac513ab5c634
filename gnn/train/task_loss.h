#pragma once

#include <span>
#include <vector>

#include "cache/feed/task_labels.h"
#include "gnn/ops/torch.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

/// Loss of a task, a mean over the seeds of a minibatch:
///   multiclass: cross entropy of softmax;
///   binary, multilabel: cross entropy of sigmoid, over the labels that are not missing;
///   regression: squared error, over the numbers that are not missing.
/// With class weights it is a weighted mean. If everything is missing, it is 0.
/// Threads: const functions may be called from many threads. Ownership: `labels` must outlive this
/// object.
class TaskLoss {
 public:
  /// `class_weights`: one per class, or empty: all 1. `smoothing`: as in LossOptions.
  TaskLoss(const Labels& labels, const std::vector<float>& class_weights, double smoothing);

  /// Computes the loss of scores [seeds, Labels::outputs()], on the device of the scores.
  torch::Tensor Of(const torch::Tensor& scores, const Minibatch& minibatch) const;

  /// As Of for some rows, as a sum: [rows, Labels::outputs()] -> []. Divided by WeightOf all rows,
  /// if that is above 0, it is the mean.
  torch::Tensor SumOf(const torch::Tensor& scores, std::span<const Row> rows) const;
  double WeightOf(std::span<const Row> rows) const;

 private:
  torch::Tensor ClassWeightsAt(const torch::Tensor& scores) const;
  torch::Tensor OfClasses(const torch::Tensor& scores, const torch::Tensor& classes) const;
  torch::Tensor OfBinary(const torch::Tensor& scores, const torch::Tensor& classes) const;
  torch::Tensor BinaryTargets(const torch::Tensor& classes) const;
  torch::Tensor BinaryLosses(const torch::Tensor& scores, const torch::Tensor& classes) const;
  torch::Tensor ClassesOf(std::span<const Row> rows) const;

  const Labels& labels_;
  torch::Tensor class_weights_;  // undefined: all 1
  const double smoothing_;
};

}  // namespace internal
}  // namespace rhizome
