#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/task_labels.h"
#include "rhizome/cache/vertex_score_sink.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/optimizer.h"
#include "rhizome/gnn/task_loss.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The outcome of one minibatch.
struct BatchOutcome {
  double loss_sum = 0;  ///< the loss times the seeds
  std::uint64_t seeds = 0;
};

struct LearnerOptions {
  OptimizerSettings optimizer = {};
  std::vector<float> class_weights = {};  ///< as TaskLoss takes them
  double label_smoothing = 0;
  std::uint64_t seed = 1;  ///< of dropout
};

/// Trains and evaluates a model on minibatches: the task's loss over the seeds, then a step of the
/// optimiser.
/// Threads: one at a time.
/// Ownership: `model` and `labels` must outlive it.
class Learner {
 public:
  Learner(Model& model, const Labels& labels, const LearnerOptions& options);

  void SetLearningRate(double rate) { optimizer_.SetLearningRate(rate); }

  /// Takes one optimiser step. Dropout depends on the seed and the minibatch's tag only. The seeds'
  /// scores before the step go to `sink`, if it is not null.
  BatchOutcome Learn(const Minibatch& minibatch, VertexScoreSink* sink = nullptr);

  /// Computes the loss without dropout, and gives the seeds' scores to `sink`.
  BatchOutcome Evaluate(const Minibatch& minibatch, VertexScoreSink& sink) const;

  /// Copies and restores the optimiser's state; together with the model's weights it is all that a
  /// later Learn depends on. Errors: kCorruption, the state is of other weights.
  LearnerState CopyState() const { return optimizer_.CopyState(); }
  Status RestoreState(const LearnerState& state) { return optimizer_.RestoreState(state); }

 private:
  Model& model_;
  const std::uint64_t seed_;
  const TaskLoss loss_;
  Optimizer optimizer_;
};

}  // namespace rhizome::inline internal
