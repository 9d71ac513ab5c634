#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/gnn/learning_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/result.h"

namespace torch::optim {
class Optimizer;
}

namespace rhizome::inline internal {

/// The state of an optimiser: what it keeps of each weight, by "NAME.NNNN", where NNNN is the
/// weight's place in Model::Parameters and NAME one of mean and square (Adam, AdamW), momentum
/// (SGD) and sum (Adagrad). Empty before the first step.
struct LearnerState {
  std::int64_t steps = 0;
  std::map<std::string, torch::Tensor> tensors;
};

struct OptimizerSettings : OptimizerChoice {
  double learning_rate = 0.01;
  double weight_decay = 0;  ///< as TrainOptions::weight_decay
};

/// Moves the weights of a model along their gradients.
/// Threads: one at a time. Ownership: shares the weights of `model`.
class Optimizer {
 public:
  Optimizer(const Model& model, const OptimizerSettings& settings);
  ~Optimizer();

  /// The rate of the steps to come.
  void SetLearningRate(double rate);

  /// Takes a step down `loss`, which a forward pass over the weights made.
  void Step(const torch::Tensor& loss);

  /// Takes a step along the gradients that the weights have.
  void StepAlongGradients();

  /// Copies the state to the host, and restores it; together with the weights it is all that a
  /// later step depends on. RestoreState is for an optimiser that has taken no step. Errors:
  /// kCorruption, the state is of other weights or of another optimiser.
  LearnerState CopyState() const;
  Status RestoreState(const LearnerState& state);

 private:
  const std::vector<torch::Tensor> parameters_;
  const OptimizerSettings settings_;
  std::int64_t steps_ = 0;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace rhizome::inline internal
