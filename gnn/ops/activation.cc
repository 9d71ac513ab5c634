#include "gnn/ops/activation.h"

#include <algorithm>
#include <cmath>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsAtOnce = 256;

ActivateArgs ArgsOf(const Activation& activation, const float* in, std::int64_t dim,
                    std::int64_t first_row, float* out) {
  const DropoutDraws draws = DrawsOf(activation.dropout);
  return {.in = in,
          .in_stride = static_cast<std::size_t>(dim),
          .out = out,
          .out_stride = static_cast<std::size_t>(dim),
          .dim = static_cast<std::size_t>(dim),
          .relu = activation.relu,
          .dropped = draws.dropped,
          .scale = draws.scale,
          .seed = activation.seed,
          .first_row = static_cast<std::uint64_t>(activation.first_row + first_row)};
}

/// Calls body(first, count) for runs of rows, on the compute threads.
template <typename Body>
void ForRows(std::int64_t rows, const Body& body) {
  const auto runs = static_cast<std::size_t>((rows + kRowsAtOnce - 1) / kRowsAtOnce);
  ComputeFor(runs, [&](std::size_t run) {
    const std::int64_t first = static_cast<std::int64_t>(run) * kRowsAtOnce;
    body(first, std::min(kRowsAtOnce, rows - first));
  });
}

torch::Tensor OnThreads(const Activation& activation, const torch::Tensor& in) {
  torch::Tensor out = at::empty_like(in);
  const std::int64_t dim = in.size(1);
  ForRows(in.size(0), [&](std::int64_t first, std::int64_t count) {
    ActivateRows(activation, in.data_ptr<float>() + first * dim, count, dim, first,
                 out.data_ptr<float>() + first * dim);
  });
  return out;
}

struct ActivateFunction : torch::autograd::Function<ActivateFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const Activation* activation) {
    RHIZOME_CHECK(activation->device != nullptr || x.is_cpu());
    const torch::Tensor in = x.contiguous();
    const torch::Tensor out = activation->device == nullptr ? OnThreads(*activation, in)
                                                            : ActivateOnDevice(*activation, in);
    context->save_for_backward({out});
    auto& data = context->saved_data;
    data["relu"] = activation->relu;
    data["dropout"] = activation->dropout;
    data["seed"] = static_cast<std::int64_t>(activation->seed);
    data["first_row"] = activation->first_row;
    data["device"] = reinterpret_cast<std::int64_t>(activation->device);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& data = context->saved_data;
    const Activation activation{.relu = data.at("relu").toBool(),
                                .dropout = data.at("dropout").toDouble(),
                                .seed = static_cast<std::uint64_t>(data.at("seed").toInt()),
                                .first_row = data.at("first_row").toInt(),
                                .device = reinterpret_cast<Device*>(data.at("device").toInt())};
    const torch::Tensor result = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    if (activation.device != nullptr)
      return {ActivateGradientOnDevice(activation, result, gradient), {}};
    torch::Tensor out = at::empty_like(gradient);
    const std::int64_t dim = gradient.size(1);
    ForRows(gradient.size(0), [&](std::int64_t first, std::int64_t count) {
      ActivateGradientRows(activation, result.data_ptr<float>() + first * dim,
                           gradient.data_ptr<float>() + first * dim, count, dim, first,
                           out.data_ptr<float>() + first * dim);
    });
    return {out, {}};
  }
};

struct EluFunction : torch::autograd::Function<EluFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    const torch::Tensor out = at::elu(x);
    context->save_for_backward({out});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const torch::Tensor result = context->get_saved_variables()[0];
    return {at::elu_backward(gradients[0], 1, 1, 1, /*is_result=*/true, result)};
  }
};

}  // namespace

DropoutDraws DrawsOf(double dropout) {
  const double share = std::round(dropout * 0x1p32);
  return {.dropped = static_cast<std::uint32_t>(std::min(share, 0x1p32 - 1)),
          .scale = static_cast<float>(1 / (1 - dropout))};
}

void ActivateRows(const Activation& activation, const float* in, std::int64_t count,
                  std::int64_t dim, std::int64_t first_row, float* out) {
  Kernels().activate(ArgsOf(activation, in, dim, first_row, out), 0,
                     static_cast<std::size_t>(count));
}

void ActivateGradientRows(const Activation& activation, const float* result, const float* gradient,
                          std::int64_t count, std::int64_t dim, std::int64_t first_row,
                          float* out) {
  const auto rows = static_cast<std::size_t>(count);
  if (!activation.relu && RHIZOME_MUTANT("gradients pass what was dropped")) {
    std::copy(gradient, gradient + count * dim, out);
    return;
  }
  if (!activation.relu) {  // drops exactly the values that were dropped
    Kernels().activate(ArgsOf(activation, gradient, dim, first_row, out), 0, rows);
    return;
  }
  // A result above zero has passed ReLU and was not dropped.
  Kernels().activate_gradient({.result = result,
                               .gradient = gradient,
                               .dim = static_cast<std::size_t>(dim),
                               .scale = DrawsOf(activation.dropout).scale,
                               .out = out},
                              0, rows);
}

torch::Tensor Activate(const torch::Tensor& x, const Activation& activation) {
  if (activation.none()) return x;
  return ActivateFunction::apply(x, &activation);
}

torch::Tensor Elu(const torch::Tensor& x) { return EluFunction::apply(x); }

}  // namespace internal
}  // namespace rhizome
