#include "gnn/train/optimizer.h"

#include <fmt/format.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>

#include <utility>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::optim::OptimizerParamGroup;

template <typename Made, typename Options>
std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(const std::vector<torch::Tensor>& decayed,
                                                       const std::vector<torch::Tensor>& others,
                                                       Options options, double weight_decay) {
  std::vector<OptimizerParamGroup> groups;
  const auto add = [&](const std::vector<torch::Tensor>& parameters, double decay) {
    if (parameters.empty()) return;
    Options of_group = options;
    of_group.weight_decay(decay);
    groups.emplace_back(parameters, std::make_unique<Options>(of_group));
  };
  add(decayed, weight_decay);
  add(others, 0);
  return std::make_unique<Made>(std::move(groups), options);
}

/// Returns whether weight decay applies to a weight: a matrix, in the first layer if only that
/// layer decays.
bool Decays(const torch::Tensor& weight, const std::string& name, const LearningOptions& options) {
  if (weight.dim() < 2 && !RHIZOME_MUTANT("biases decay")) return false;
  return !options.optimizer.decay_first_layer_only || RHIZOME_MUTANT("every layer decays") ||
         name.starts_with("layers.0.");
}

/// Visits the tensors that an optimiser keeps for a weight, the fields of ParamState, with their
/// names.
template <typename Visit>
void VisitState(torch::optim::AdamParamState& state, const Visit& visit) {
  visit("mean", state.exp_avg());
  visit("square", state.exp_avg_sq());
}
template <typename Visit>
void VisitState(torch::optim::AdamWParamState& state, const Visit& visit) {
  visit("mean", state.exp_avg());
  visit("square", state.exp_avg_sq());
}
template <typename Visit>
void VisitState(torch::optim::SGDParamState& state, const Visit& visit) {
  visit("momentum", state.momentum_buffer());
}
template <typename Visit>
void VisitState(torch::optim::AdagradParamState& state, const Visit& visit) {
  visit("sum", state.sum());
}

/// Calls use(state) with an empty state of the kind's type.
template <typename Use>
auto WithStateOf(OptimizerKind kind, const Use& use) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return use(torch::optim::AdamWParamState());
    case OptimizerKind::kSgd:
      return use(torch::optim::SGDParamState());
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kAdagradRow:
      return use(torch::optim::AdagradParamState());
    case OptimizerKind::kAdam:
      break;
  }
  return use(torch::optim::AdamParamState());
}

template <typename State>
void SetSteps(State& state, std::int64_t steps) {
  if constexpr (requires { state.step(steps); }) state.step(steps);
}

torch::Tensor CopyOn(const torch::Device& place, const torch::Tensor& tensor) {
  return tensor.detach().to(place, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

std::string StateName(const char* field, std::size_t i) {
  return fmt::format("{}.{:04}", field, i);
}

}  // namespace

// Divides the weights into those that decay and others, and creates libtorch's optimiser of the
// chosen kind with a parameter group for each.
Optimizer::Optimizer(const Model& model, const LearningOptions& options)
    : parameters_(model.Parameters()), options_(options) {
  const std::vector<std::string> names = model.ParameterNames();
  std::vector<torch::Tensor> decayed, others;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    (Decays(parameters_[i], names[i], options) ? decayed : others).push_back(parameters_[i]);
  const auto make = [&]<typename Made, typename Options>(std::type_identity<Made>,
                                                         const Options& of_kind) {
    return MakeOptimizer<Made>(decayed, others, of_kind, options.weight_decay);
  };
  const double rate = options.learning_rate;
  switch (options.optimizer.kind) {
    case OptimizerKind::kAdam:
      optimizer_ = make(std::type_identity<torch::optim::Adam>(), torch::optim::AdamOptions(rate));
      break;
    case OptimizerKind::kAdamW:
      optimizer_ =
          make(std::type_identity<torch::optim::AdamW>(), torch::optim::AdamWOptions(rate));
      break;
    case OptimizerKind::kSgd:
      optimizer_ = make(std::type_identity<torch::optim::SGD>(),
                        torch::optim::SGDOptions(rate).momentum(options.optimizer.momentum));
      break;
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kAdagradRow:  // refused by WithTypedDefaults
      optimizer_ =
          make(std::type_identity<torch::optim::Adagrad>(), torch::optim::AdagradOptions(rate));
      break;
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::SetLearningRate(double rate) {
  for (OptimizerParamGroup& group : optimizer_->param_groups()) group.options().set_lr(rate);
}

void Optimizer::Step(const torch::Tensor& loss) {
  optimizer_->zero_grad();
  loss.backward();
  StepAlongGradients();
}

void Optimizer::StepAlongGradients() {
  if (options_.optimizer.clip_norm > 0)
    torch::nn::utils::clip_grad_norm_(parameters_, options_.optimizer.clip_norm);
  optimizer_->step();
  ++steps_;
}

LearnerState Optimizer::CopyState() const {
  LearnerState copy{.steps = steps_, .tensors = {}};
  if (steps_ == 0) return copy;
  WithStateOf(options_.optimizer.kind, [&]<typename State>(const State&) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto found = optimizer_->state().find(parameters_[i].unsafeGetTensorImpl());
      if (found == optimizer_->state().end()) continue;  // the weight has not had a gradient yet
      VisitState(static_cast<State&>(*found->second), [&](const char* name, torch::Tensor& tensor) {
        if (tensor.defined()) copy.tensors[StateName(name, i)] = CopyOn(torch::kCPU, tensor);
      });
    }
  });
  return copy;
}

// Creates libtorch's state for each weight whose tensors are complete and have its shape. All
// tensors of `state` must be used.
Status Optimizer::RestoreState(const LearnerState& state) {
  if (state.steps == 0) return Status::Ok();
  std::size_t used = 0;
  WithStateOf(options_.optimizer.kind, [&]<typename State>(const State&) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto restored = std::make_unique<State>();
      SetSteps(*restored, state.steps);
      bool complete = true;
      VisitState(*restored, [&](const char* name, torch::Tensor& tensor) {
        const auto found = state.tensors.find(StateName(name, i));
        complete = complete && found != state.tensors.end() &&
                   found->second.sizes() == parameters_[i].sizes();
        if (!complete) return;
        tensor = CopyOn(parameters_[i].device(), found->second);
        ++used;
      });
      if (complete) optimizer_->state()[parameters_[i].unsafeGetTensorImpl()] = std::move(restored);
    }
  });
  if (used != state.tensors.size())
    return Status::Corruption("the state of the optimiser does not match these weights");
  steps_ = state.steps;
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
