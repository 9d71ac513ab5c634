#include "gnn/train/learner.h"

#include <span>

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

void GiveScores(const Minibatch& minibatch, const torch::Tensor& scores, VertexScoreSink& sink) {
  const torch::Tensor values = scores.detach().to(torch::kCPU).contiguous();
  sink.Take(std::span(minibatch.rows).first(minibatch.seed_count),
            std::span(values.data_ptr<float>(), static_cast<std::size_t>(values.numel())));
}

/// Appends the values of a tensor; if it is undefined, as many zeros as `like` has values.
void Append(const torch::Tensor& tensor, const torch::Tensor& like, std::vector<float>& numbers) {
  const auto count = static_cast<std::size_t>(like.numel());
  if (!tensor.defined()) {
    numbers.resize(numbers.size() + count, 0);
    return;
  }
  const torch::Tensor values = tensor.detach().contiguous();
  const float* const begin = values.data_ptr<float>();
  numbers.insert(numbers.end(), begin, begin + count);
}

/// Copies the next values into a tensor, divided by `divisor`.
void TakeNext(std::span<const float>& numbers, double divisor, const torch::Tensor& into) {
  const auto count = static_cast<std::size_t>(into.numel());
  const torch::NoGradGuard guard;
  into.copy_(torch::from_blob(const_cast<float*>(numbers.data()), into.sizes(), torch::kFloat32));
  into.div_(divisor);
  numbers = numbers.subspan(count);
}

}  // namespace

Learner::Learner(Model& model, const Labels& labels, const LearnerOptions& options)
    : model_(model),
      seed_(options.learning.seed),
      loss_(labels, options.class_weights, options.learning.loss.label_smoothing),
      objective_(options.objective),
      optimizer_(model, options.learning) {}

Learner::Begun Learner::BeginLearning(const Minibatch& minibatch, const LearnerInputs& inputs) {
  const std::uint64_t dropout_seed = DropoutSeed(minibatch);
  const RunMode mode{&dropout_seed};
  const torch::Tensor scores = model_.Scores(
      model_.FirstRows(minibatch, inputs.features, mode, inputs.learned), inputs.graphs, mode);
  const torch::Tensor loss = LossOf(scores, minibatch);
  optimizer_.Step(loss);
  return {.scores = scores.detach(), .loss = loss.detach(), .examples = ExamplesOf(minibatch)};
}

Learner::Begun Learner::BeginEvaluating(const Minibatch& minibatch,
                                        const LearnerInputs& inputs) const {
  const torch::NoGradGuard guard;
  const torch::Tensor scores = model_.Scores(
      model_.FirstRows(minibatch, inputs.features, {}, inputs.learned), inputs.graphs, {});
  return {.scores = scores, .loss = LossOf(scores, minibatch), .examples = ExamplesOf(minibatch)};
}

BatchOutcome Learner::Evaluate(const Minibatch& minibatch, VertexScoreSink& sink,
                               std::vector<LearnedTable>* learned) const {
  const Begun begun = BeginEvaluating(minibatch, InputsOf(minibatch, learned));
  if (objective_ == nullptr) return Finish(minibatch, begun, &sink);
  BatchOutcome outcome = Finish(minibatch, begun, nullptr);
  outcome.metric_sum = objective_->Measure(begun.scores, minibatch);
  return outcome;
}

std::size_t Learner::gradient_size() const {
  std::int64_t count = 0;
  for (const torch::Tensor& weight : model_.Parameters()) count += weight.numel();
  for (const torch::Tensor& statistic : model_.Statistics()) count += statistic.numel();
  return static_cast<std::size_t>(count);
}

MinibatchGradient Learner::Differentiate(const Minibatch& minibatch, VertexScoreSink* sink) {
  const std::vector<torch::Tensor> weights = model_.Parameters(), statistics = model_.Statistics();
  for (const torch::Tensor& weight : weights) weight.mutable_grad() = torch::Tensor();
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& statistic : statistics) before.push_back(statistic.clone());
  const std::uint64_t dropout_seed = DropoutSeed(minibatch);
  const LearnerInputs inputs = InputsOf(minibatch);
  const auto seeds = std::span(minibatch.rows).first(minibatch.seed_count);
  const torch::Tensor scores = model_.Scores(minibatch, inputs.graphs, {&dropout_seed});
  const torch::Tensor loss = loss_.SumOf(scores, seeds);
  loss.backward();
  MinibatchGradient gradient{
      .numbers = {}, .loss_sum = loss.item<double>(), .weight = loss_.WeightOf(seeds)};
  gradient.numbers.reserve(gradient_size());
  for (const torch::Tensor& weight : weights) Append(weight.grad(), weight, gradient.numbers);
  const torch::NoGradGuard guard;
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    Append(statistics[i], statistics[i], gradient.numbers);
    statistics[i].copy_(before[i]);
  }
  if (sink != nullptr) GiveScores(minibatch, scores, *sink);
  return gradient;
}

MinibatchGradient Learner::Measure(const Minibatch& minibatch, VertexScoreSink& sink) const {
  const torch::NoGradGuard guard;
  const LearnerInputs inputs = InputsOf(minibatch);
  const auto seeds = std::span(minibatch.rows).first(minibatch.seed_count);
  const torch::Tensor scores = model_.Scores(minibatch, inputs.graphs, {});
  GiveScores(minibatch, scores, sink);
  return {.numbers = {},
          .loss_sum = loss_.SumOf(scores, seeds).item<double>(),
          .weight = loss_.WeightOf(seeds)};
}

void Learner::Step(const MinibatchGradient& sum, std::uint64_t minibatches) {
  RHIZOME_CHECK(sum.numbers.size() == gradient_size());
  std::span<const float> numbers = sum.numbers;
  for (const torch::Tensor& weight : model_.Parameters()) {
    weight.mutable_grad() = torch::empty_like(weight.detach());
    TakeNext(numbers, sum.weight > 0 ? sum.weight : 1, weight.grad());
  }
  for (const torch::Tensor& statistic : model_.Statistics())
    TakeNext(numbers, static_cast<double>(minibatches), statistic);
  optimizer_.StepAlongGradients();
}

BatchOutcome Learner::Finish(const Minibatch& minibatch, const Begun& begun,
                             VertexScoreSink* sink) {
  if (sink != nullptr) GiveScores(minibatch, begun.scores, *sink);
  return {.loss_sum = begun.loss.item<double>() * static_cast<double>(begun.examples),
          .seeds = begun.examples};
}

}  // namespace internal
}  // namespace rhizome
