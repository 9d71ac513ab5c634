#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gnn/models/model.h"
#include "gnn/ops/torch.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace torch::optim {
class Optimizer;
}

namespace rhizome {
inline namespace internal {

/// State of an optimiser: its tensors for each weight, keyed by "NAME.NNNN", where NNNN is the
/// weight's index in Model::Parameters and NAME is mean or square (Adam, AdamW), momentum (SGD) or
/// sum (Adagrad). Empty before the first step.
struct LearnerState {
  std::int64_t steps = 0;
  std::map<std::string, torch::Tensor> tensors;
};

/// Updates the weights of a model from their gradients, by the optimiser, learning rate and weight
/// decay of LearningOptions.
/// Threads: one at a time. Ownership: shares the weights of `model`.
class Optimizer {
 public:
  Optimizer(const Model& model, const LearningOptions& options);
  ~Optimizer();

  /// Sets the rate of the following steps.
  void SetLearningRate(double rate);

  /// Computes the gradients of `loss`, the result of a forward pass over the weights, and performs
  /// a step.
  void Step(const torch::Tensor& loss);

  /// Performs a step with the gradients that the weights have.
  void StepAlongGradients();

  /// Copy the state to the host, and restore it. A later step depends only on it and on the
  /// weights. RestoreState requires an optimiser that has not performed a step. Errors:
  /// kCorruption, the state belongs to other weights or to another optimiser.
  LearnerState CopyState() const;
  Status RestoreState(const LearnerState& state);

 private:
  const std::vector<torch::Tensor> parameters_;
  const LearningOptions options_;
  std::int64_t steps_ = 0;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace internal
}  // namespace rhizome
