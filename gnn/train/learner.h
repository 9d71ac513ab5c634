#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/task_labels.h"
#include "rhizome/cache/vertex_score_sink.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/optimizer.h"
#include "rhizome/gnn/task_loss.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The outcome of one minibatch.
struct BatchOutcome {
  double loss_sum = 0;  ///< the loss times the seeds
  std::uint64_t seeds = 0;
};

/// The gradient of a minibatch whose step is shared with others: sums over its seeds, to be added
/// up and divided.
struct MinibatchGradient {
  /// Gradients of the sum of the losses, by Model::Parameters, then the running statistics that the
  /// minibatch leaves (Model::Statistics), all in one row.
  std::vector<float> numbers;
  double loss_sum = 0;  ///< the sum of the losses
  double weight = 0;    ///< by which it is divided to be a mean (TaskLoss::WeightOf)
};

/// A minibatch as a model reads it: on the host, or features and graphs on a device.
struct LearnerInputs {
  LayerRows features;
  std::vector<LayerGraph> graphs;
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
/// Ownership: `model` and `labels` must outlive it, and the model stays where it is.
class Learner {
 public:
  Learner(Model& model, const Labels& labels, const LearnerOptions& options);

  void SetLearningRate(double rate) { optimizer_.SetLearningRate(rate); }

  /// Takes one optimiser step. Dropout depends on the seed and the minibatch's tag only. The seeds'
  /// scores before the step go to `sink`, if it is not null.
  BatchOutcome Learn(const Minibatch& minibatch, VertexScoreSink* sink = nullptr) {
    return Finish(minibatch, BeginLearning(minibatch, InputsOf(minibatch)), sink);
  }

  /// Computes the loss without dropout, and gives the seeds' scores to `sink`.
  BatchOutcome Evaluate(const Minibatch& minibatch, VertexScoreSink& sink) const {
    return Finish(minibatch, BeginEvaluating(minibatch, InputsOf(minibatch)), &sink);
  }

  // The same in two parts. A device may be at work on the first when it returns; `inputs` are not
  // read any more then, but by what was queued on the device. Finish waits for it.
  struct Begun {
    torch::Tensor scores, loss;
  };
  Begun BeginLearning(const Minibatch& minibatch, const LearnerInputs& inputs);
  Begun BeginEvaluating(const Minibatch& minibatch, const LearnerInputs& inputs) const;
  static BatchOutcome Finish(const Minibatch& minibatch, const Begun& begun, VertexScoreSink* sink);

  // A step that several minibatches share, each with the weights as they are before it.

  /// Computes a minibatch's part; statistics stay as they are. Otherwise as Learn.
  MinibatchGradient Differentiate(const Minibatch& minibatch, VertexScoreSink* sink);

  /// The same without a gradient and without dropout: the loss alone.
  MinibatchGradient Measure(const Minibatch& minibatch, VertexScoreSink& sink) const;

  /// Takes a step along the sum of the parts of `minibatches` minibatches.
  void Step(const MinibatchGradient& sum, std::uint64_t minibatches);

  /// Length of MinibatchGradient::numbers.
  std::size_t gradient_size() const;

  /// The inputs on the host; they borrow the minibatch.
  LearnerInputs InputsOf(const Minibatch& minibatch) const {
    return {model_.Features(minibatch), model_.MakeGraphs(minibatch)};
  }

  /// Copies and restores the optimiser's state; together with the model's weights it is all that a
  /// later Learn depends on. Errors: kCorruption, the state is of other weights.
  LearnerState CopyState() const { return optimizer_.CopyState(); }
  Status RestoreState(const LearnerState& state) { return optimizer_.RestoreState(state); }

 private:
  std::uint64_t DropoutSeed(const Minibatch& minibatch) const {
    return seed_ * 0x9e3779b97f4a7c15u + minibatch.tag;
  }

  Model& model_;
  const std::uint64_t seed_;
  const TaskLoss loss_;
  Optimizer optimizer_;
};

}  // namespace rhizome::inline internal
