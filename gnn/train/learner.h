#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/cache/minibatch.h"
#include "rhizome/gnn/model.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The outcome of one minibatch.
struct BatchOutcome {
  double loss_sum = 0;  ///< cross entropy, summed over the seeds
  std::uint64_t seeds = 0;
  std::uint64_t correct = 0;
};

/// The state of Adam: the running means of each weight's gradient and of its square, in the order
/// of Model::Parameters. Empty before the first step.
struct LearnerState {
  std::int64_t steps = 0;
  std::vector<torch::Tensor> means;
  std::vector<torch::Tensor> squares;
};

/// Trains and evaluates a model on minibatches: cross entropy over the seeds, Adam with weight
/// decay on every weight.
/// Threads: one at a time.
/// Ownership: `model` and `labels` must outlive it.
class Learner {
 public:
  Learner(Model& model, const ClassLabels& labels, double learning_rate, double weight_decay,
          std::uint64_t seed);

  /// Takes one optimiser step. Dropout depends on the seed and the minibatch's tag only.
  BatchOutcome Learn(const Minibatch& minibatch);

  BatchOutcome Evaluate(const Minibatch& minibatch) const;

  /// Copies and restores the optimiser's state; together with the model's weights it is all that a
  /// later Learn depends on. Errors: kCorruption, the state is of other weights.
  LearnerState CopyState() const;
  Status RestoreState(const LearnerState& state);

 private:
  torch::Tensor TargetsOf(const Minibatch& minibatch) const;

  Model& model_;
  const ClassLabels& labels_;
  const std::uint64_t seed_;
  std::unique_ptr<torch::optim::Adam> adam_;
};

}  // namespace rhizome::inline internal
