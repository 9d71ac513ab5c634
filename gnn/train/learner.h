#pragma once

#include <cstdint>
#include <vector>

#include "cache/feed/task_labels.h"
#include "cache/feed/vertex_score_sink.h"
#include "gnn/models/model.h"
#include "gnn/ops/torch.h"
#include "gnn/train/objective.h"
#include "gnn/train/optimizer.h"
#include "gnn/train/task_loss.h"
#include "rhizome/loader.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Outcome of one minibatch.
struct BatchOutcome {
  double loss_sum = 0;      ///< mean loss times the number of seeds
  std::uint64_t seeds = 0;  ///< with an Objective: examples
  double metric_sum = 0;    ///< Objective::Measure; 0 otherwise
};

/// Gradient of a minibatch in a step that several minibatches share: sums over its seeds, to be
/// added over the minibatches and divided by the total weight.
struct MinibatchGradient {
  /// Gradients of the sum of the losses, in the order of Model::Parameters, then the running
  /// statistics after the minibatch (Model::Statistics), concatenated.
  std::vector<float> numbers;
  double loss_sum = 0;  ///< the sum of the losses
  double weight = 0;    ///< divisor that turns sums into a mean (TaskLoss::WeightOf)
};

/// Inputs of a model for one minibatch: on the host, or features and graphs on a device. With
/// inputs by type (inputs.h) the features are those in the minibatch.
struct LearnerInputs {
  LayerRows features;
  std::vector<LayerGraph> graphs;
  std::vector<LearnedTable>* learned = nullptr;  ///< as InputLayer::RowsOf
};

struct LearnerOptions {
  const LearningOptions& learning;        ///< its seed is the seed of dropout
  std::vector<float> class_weights = {};  ///< as for TaskLoss
  Objective* objective = nullptr;         ///< null: the loss of the labels' task
};

/// Trains and evaluates a model on minibatches: computes the task's loss over the seeds, then
/// performs an optimiser step.
/// Threads: one at a time.
/// Ownership: `model` and `labels` must outlive this object, and the model must not be moved.
class Learner {
 public:
  Learner(Model& model, const Labels& labels, const LearnerOptions& options);

  void SetLearningRate(double rate) { optimizer_.SetLearningRate(rate); }

  /// Performs one optimiser step. Dropout depends only on the seed and the minibatch's tag. If
  /// `sink` is not null, it receives the seeds' scores before the step. The gradients of `learned`
  /// are set.
  BatchOutcome Learn(const Minibatch& minibatch, VertexScoreSink* sink = nullptr,
                     std::vector<LearnedTable>* learned = nullptr) {
    return Finish(minibatch, BeginLearning(minibatch, InputsOf(minibatch, learned)), sink);
  }

  /// Computes the loss without dropout, and passes the seeds' scores to `sink`; with an objective,
  /// measures instead.
  BatchOutcome Evaluate(const Minibatch& minibatch, VertexScoreSink& sink,
                        std::vector<LearnedTable>* learned = nullptr) const;

  // Learn and Evaluate in two parts. When the first part returns, a device may still be computing,
  // and only the work queued there still reads `inputs`. Finish waits for it.
  struct Begun {
    torch::Tensor scores, loss;
    std::uint64_t examples = 0;
  };
  Begun BeginLearning(const Minibatch& minibatch, const LearnerInputs& inputs);
  Begun BeginEvaluating(const Minibatch& minibatch, const LearnerInputs& inputs) const;
  static BatchOutcome Finish(const Minibatch& minibatch, const Begun& begun, VertexScoreSink* sink);

  // A step that several minibatches share; each uses the weights before the step.

  /// Computes the gradient of a minibatch without changing statistics. Otherwise as Learn.
  MinibatchGradient Differentiate(const Minibatch& minibatch, VertexScoreSink* sink);

  /// Computes the loss of a minibatch only, without gradient and dropout.
  MinibatchGradient Measure(const Minibatch& minibatch, VertexScoreSink& sink) const;

  /// Performs a step along `sum`, the sum of the gradients of `minibatches` minibatches.
  void Step(const MinibatchGradient& sum, std::uint64_t minibatches);

  /// Length of MinibatchGradient::numbers.
  std::size_t gradient_size() const;

  /// Returns inputs on the host, which borrow the minibatch.
  LearnerInputs InputsOf(const Minibatch& minibatch,
                         std::vector<LearnedTable>* learned = nullptr) const {
    return {model_.Features(minibatch), model_.MakeGraphs(minibatch), learned};
  }

  /// Copy and restore the optimiser's state. A later Learn depends only on it and on the model's
  /// weights. Errors: kCorruption, the state belongs to other weights.
  LearnerState CopyState() const { return optimizer_.CopyState(); }
  Status RestoreState(const LearnerState& state) { return optimizer_.RestoreState(state); }

 private:
  torch::Tensor LossOf(const torch::Tensor& scores, const Minibatch& minibatch) const {
    return objective_ != nullptr ? objective_->Loss(scores, minibatch)
                                 : loss_.Of(scores, minibatch);
  }
  std::uint64_t ExamplesOf(const Minibatch& minibatch) const {
    return objective_ != nullptr ? objective_->Examples(minibatch) : minibatch.seed_count;
  }
  std::uint64_t DropoutSeed(const Minibatch& minibatch) const {
    return seed_ * 0x9e3779b97f4a7c15u + minibatch.tag;
  }

  Model& model_;
  const std::uint64_t seed_;
  const TaskLoss loss_;
  Objective* const objective_;
  Optimizer optimizer_;
};

}  // namespace internal
}  // namespace rhizome
