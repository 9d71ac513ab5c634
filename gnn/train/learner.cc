#include "rhizome/gnn/learner.h"

#include <span>

namespace rhizome::inline internal {
namespace {

void GiveScores(const Minibatch& minibatch, const torch::Tensor& scores, VertexScoreSink& sink) {
  const torch::Tensor values = scores.detach().to(torch::kCPU).contiguous();
  sink.Take(std::span(minibatch.rows).first(minibatch.seed_count),
            std::span(values.data_ptr<float>(), static_cast<std::size_t>(values.numel())));
}

}  // namespace

Learner::Learner(Model& model, const Labels& labels, const LearnerOptions& options)
    : model_(model),
      seed_(options.seed),
      loss_(labels, options.class_weights, options.label_smoothing),
      optimizer_(model, options.optimizer) {}

Learner::Begun Learner::BeginLearning(const Minibatch& minibatch, const LearnerInputs& inputs) {
  const std::uint64_t dropout_seed = seed_ * 0x9e3779b97f4a7c15u + minibatch.tag;
  const torch::Tensor scores = model_.Scores(inputs.features, inputs.graphs, {&dropout_seed});
  const torch::Tensor loss = loss_.Of(scores, minibatch);
  optimizer_.Step(loss);
  return {.scores = scores.detach(), .loss = loss.detach()};
}

Learner::Begun Learner::BeginEvaluating(const Minibatch& minibatch,
                                        const LearnerInputs& inputs) const {
  const torch::NoGradGuard guard;
  const torch::Tensor scores = model_.Scores(inputs.features, inputs.graphs, {});
  return {.scores = scores, .loss = loss_.Of(scores, minibatch)};
}

BatchOutcome Learner::Finish(const Minibatch& minibatch, const Begun& begun,
                             VertexScoreSink* sink) {
  if (sink != nullptr) GiveScores(minibatch, begun.scores, *sink);
  return {.loss_sum = begun.loss.item<double>() * static_cast<double>(minibatch.seed_count),
          .seeds = minibatch.seed_count};
}

}  // namespace rhizome::inline internal
