#include "rhizome/gnn/dense.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>

#include "rhizome/gnn/compute_threads.h"

namespace rhizome {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// mkldnn::_linear_pointwise(x, weight, bias, attribute, scalars, algorithm): what libtorch's own
// compiler calls for a linear layer. It is no function of ATen, hence found by name.
using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, c10::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);

std::optional<c10::TypedOperatorHandle<LinearPointwise>> FindLinearPointwise() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!found || !found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  return found->typed<LinearPointwise>();
}

}  // namespace

torch::Tensor Multiply(const torch::Tensor& x, const torch::Tensor& weight,
                       const torch::Tensor& bias) {
  static const auto linear = FindLinearPointwise();
  const at::AutoDispatchBelowADInplaceOrView guard;
  if (!linear) {
    return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
  }
  return linear->call(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, "none",
                      c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

torch::Tensor PaddedTile(const torch::Tensor& x, std::int64_t tile) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const std::int64_t first = tile * kDenseRows;
  const std::int64_t count = std::min(kDenseRows, x.size(0) - first);
  const torch::Tensor rows = x.narrow(0, first, count);
  if (count == kDenseRows) return rows;
  torch::Tensor padded = at::zeros({kDenseRows, x.size(1)}, x.options());
  padded.narrow(0, 0, count).copy_(rows);
  return padded;
}

WeightGradient::WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in)
    : tiles_(DenseTiles(rows)),
      groups_(std::clamp<std::int64_t>((tiles_ + 1) / 2, 1, kMost)),
      weight_(at::zeros({groups_, out, in})),
      bias_(at::zeros({groups_, out})) {}

std::int64_t WeightGradient::FirstTile(std::size_t group) const {
  return tiles_ * static_cast<std::int64_t>(group) / groups_;
}

void WeightGradient::Add(std::size_t group, const torch::Tensor& gradient, const torch::Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const auto g = static_cast<std::int64_t>(group);
  weight_.select(0, g).add_(Multiply(gradient.t(), x.t(), {}));
  float* const sum = bias_.data_ptr<float>() + g * bias_.size(1);
  const float* row = gradient.data_ptr<float>();
  for (std::int64_t i = 0; i < gradient.size(0); ++i, row += gradient.size(1)) {
    for (std::int64_t c = 0; c < gradient.size(1); ++c) sum[c] += row[c];
  }
}

torch::Tensor WeightGradient::Weight() const {
  torch::Tensor sum = weight_.select(0, 0).clone();
  for (std::int64_t g = 1; g < groups_; ++g) sum.add_(weight_.select(0, g));
  return sum;
}

torch::Tensor WeightGradient::Bias() const {
  torch::Tensor sum = bias_.select(0, 0).clone();
  for (std::int64_t g = 1; g < groups_; ++g) sum.add_(bias_.select(0, g));
  return sum;
}

namespace {

void CopyTile(const torch::Tensor& tile, std::int64_t number, torch::Tensor& out) {
  const std::int64_t first = number * kDenseRows;
  const std::int64_t count = std::min(kDenseRows, out.size(0) - first);
  out.narrow(0, first, count).copy_(tile.narrow(0, 0, count));
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    context->save_for_backward({x, weight});
    const torch::Tensor rows = x.contiguous();
    torch::Tensor out = at::empty({x.size(0), weight.size(0)});
    ComputeFor(static_cast<std::size_t>(DenseTiles(x.size(0))), [&](std::size_t i) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const auto tile = static_cast<std::int64_t>(i);
      CopyTile(Multiply(PaddedTile(rows, tile), weight, {}), tile, out);
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor x = saved[0].contiguous();
    const torch::Tensor turned = saved[1].t().contiguous();
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor x_gradient;
    if (context->needs_input_grad(0)) x_gradient = at::empty_like(x);
    WeightGradient weight(x.size(0), gradient.size(1), x.size(1));
    ComputeFor(weight.groups(), [&](std::size_t group) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const std::int64_t end = weight.FirstTile(group + 1);
      for (std::int64_t tile = weight.FirstTile(group); tile < end; ++tile) {
        const torch::Tensor part = PaddedTile(gradient, tile);
        weight.Add(group, part, PaddedTile(x, tile));
        if (x_gradient.defined()) CopyTile(Multiply(part, turned, {}), tile, x_gradient);
      }
    });
    return {x_gradient, weight.Weight()};
  }
};

}  // namespace

torch::Tensor Linear(const torch::Tensor& x, const torch::Tensor& weight) {
  return LinearFunction::apply(x, weight);
}

}  // namespace rhizome
