#include "rhizome/gnn/learner.h"

namespace rhizome::inline internal {
namespace {

BatchOutcome MakeOutcome(const torch::Tensor& scores, const torch::Tensor& targets, double mean) {
  const std::int64_t seeds = targets.size(0);
  const torch::Tensor right = scores.detach().argmax(1).eq(targets).sum();
  return {.loss_sum = mean * static_cast<double>(seeds),
          .seeds = static_cast<std::uint64_t>(seeds),
          .correct = static_cast<std::uint64_t>(right.item<std::int64_t>())};
}

}  // namespace

Learner::Learner(Model& model, const ClassLabels& labels, double learning_rate, double weight_decay,
                 std::uint64_t seed)
    : model_(model), labels_(labels), seed_(seed) {
  torch::optim::AdamOptions options(learning_rate);
  options.weight_decay(weight_decay);
  std::vector<torch::Tensor> weights;
  for (const Parameter& parameter : model.Parameters()) weights.push_back(parameter.tensor);
  adam_ = std::make_unique<torch::optim::Adam>(std::move(weights), options);
}

torch::Tensor Learner::TargetsOf(const Minibatch& minibatch) const {
  torch::Tensor targets =
      torch::empty({static_cast<std::int64_t>(minibatch.seed_count)}, torch::kInt64);
  auto* values = targets.data_ptr<std::int64_t>();
  for (std::uint64_t i = 0; i < minibatch.seed_count; ++i) {
    values[i] = labels_.label[static_cast<std::size_t>(minibatch.rows[i])];
  }
  return targets;
}

BatchOutcome Learner::Learn(const Minibatch& minibatch) {
  const std::uint64_t dropout_seed = seed_ * 0x9e3779b97f4a7c15u + minibatch.tag;
  const std::vector<LayerGraph> graphs = model_.MakeGraphs(minibatch);
  const torch::Tensor scores = model_.Scores(minibatch, graphs, {&dropout_seed});
  const torch::Tensor targets = TargetsOf(minibatch);
  const torch::Tensor loss = torch::nn::functional::cross_entropy(scores, targets);
  adam_->zero_grad();
  loss.backward();
  adam_->step();
  return MakeOutcome(scores, targets, loss.item<double>());
}

BatchOutcome Learner::Evaluate(const Minibatch& minibatch) const {
  const torch::NoGradGuard guard;
  const std::vector<LayerGraph> graphs = model_.MakeGraphs(minibatch);
  const torch::Tensor scores = model_.Scores(minibatch, graphs, {});
  const torch::Tensor targets = TargetsOf(minibatch);
  const torch::Tensor loss = torch::nn::functional::cross_entropy(scores, targets);
  return MakeOutcome(scores, targets, loss.item<double>());
}

LearnerState Learner::CopyState() const {
  LearnerState copy;
  for (const Parameter& parameter : model_.Parameters()) {
    const auto found = adam_->state().find(parameter.tensor.unsafeGetTensorImpl());
    if (found == adam_->state().end()) return {};
    const auto& state = static_cast<const torch::optim::AdamParamState&>(*found->second);
    copy.steps = state.step();
    copy.means.push_back(state.exp_avg().clone());
    copy.squares.push_back(state.exp_avg_sq().clone());
  }
  return copy;
}

Status Learner::RestoreState(const LearnerState& state) {
  adam_->state().clear();
  if (state.steps == 0) return Status::Ok();
  const std::vector<Parameter> parameters = model_.Parameters();
  bool fits = state.means.size() == parameters.size() && state.squares.size() == parameters.size();
  for (std::size_t i = 0; fits && i < parameters.size(); ++i) {
    fits = state.means[i].sizes() == parameters[i].tensor.sizes() &&
           state.squares[i].sizes() == parameters[i].tensor.sizes();
  }
  if (!fits) return Status::Corruption("the optimiser's state is not that of these weights");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto restored = std::make_unique<torch::optim::AdamParamState>();
    restored->step(state.steps);
    restored->exp_avg(state.means[i].clone());
    restored->exp_avg_sq(state.squares[i].clone());
    adam_->state()[parameters[i].tensor.unsafeGetTensorImpl()] = std::move(restored);
  }
  return Status::Ok();
}

}  // namespace rhizome::inline internal
