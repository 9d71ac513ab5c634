#include "rhizome/gnn/learner.h"

#include <span>

namespace rhizome::inline internal {
namespace {

BatchOutcome OutcomeOf(const Minibatch& minibatch, const torch::Tensor& loss) {
  return {.loss_sum = loss.item<double>() * static_cast<double>(minibatch.seed_count),
          .seeds = minibatch.seed_count};
}

void GiveScores(const Minibatch& minibatch, const torch::Tensor& scores, VertexScoreSink& sink) {
  const torch::Tensor values = scores.detach().contiguous();
  sink.Take(std::span(minibatch.rows).first(minibatch.seed_count),
            std::span(values.data_ptr<float>(), static_cast<std::size_t>(values.numel())));
}

}  // namespace

Learner::Learner(Model& model, const Labels& labels, const LearnerOptions& options)
    : model_(model),
      seed_(options.seed),
      loss_(labels, options.class_weights, options.label_smoothing),
      optimizer_(model, options.optimizer) {}

BatchOutcome Learner::Learn(const Minibatch& minibatch, VertexScoreSink* sink) {
  const std::uint64_t dropout_seed = seed_ * 0x9e3779b97f4a7c15u + minibatch.tag;
  const std::vector<LayerGraph> graphs = model_.MakeGraphs(minibatch);
  const torch::Tensor scores = model_.Scores(minibatch, graphs, {&dropout_seed});
  const torch::Tensor loss = loss_.Of(scores, minibatch);
  if (sink != nullptr) GiveScores(minibatch, scores, *sink);
  optimizer_.Step(loss);
  return OutcomeOf(minibatch, loss);
}

BatchOutcome Learner::Evaluate(const Minibatch& minibatch, VertexScoreSink& sink) const {
  const torch::NoGradGuard guard;
  const std::vector<LayerGraph> graphs = model_.MakeGraphs(minibatch);
  const torch::Tensor scores = model_.Scores(minibatch, graphs, {});
  GiveScores(minibatch, scores, sink);
  return OutcomeOf(minibatch, loss_.Of(scores, minibatch));
}

}  // namespace rhizome::inline internal
