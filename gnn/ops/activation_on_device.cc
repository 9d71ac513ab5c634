#include "gnn/ops/activation.h"
#include "gnn/ops/device_failure.h"

namespace rhizome {
inline namespace internal {

torch::Tensor ActivateOnDevice(const Activation& activation, const torch::Tensor& in) {
  torch::Tensor out = at::empty_like(in);
  const DropoutDraws draws = DrawsOf(activation.dropout);
  cuda::ActivateArgs args;
  args.in = in.data_ptr<float>();
  args.rows = static_cast<std::size_t>(in.size(0));
  args.dim = static_cast<std::size_t>(in.size(1));
  args.relu = activation.relu;
  args.dropout = {.dropped = draws.dropped,
                  .scale = draws.scale,
                  .seed = activation.seed,
                  .first_row = static_cast<std::uint64_t>(activation.first_row)};
  args.out = out.data_ptr<float>();
  ThrowIfError(activation.device->Activate(kDefaultStream, args));
  return out;
}

torch::Tensor ActivateGradientOnDevice(const Activation& activation, const torch::Tensor& result,
                                       const torch::Tensor& gradient) {
  // Drops exactly the values that the forward pass dropped.
  if (!activation.relu) return ActivateOnDevice(activation, gradient);
  torch::Tensor out = at::empty_like(gradient);
  cuda::ActivateGradientArgs args;
  args.result = result.data_ptr<float>();
  args.gradient = gradient.data_ptr<float>();
  args.count = static_cast<std::size_t>(gradient.numel());
  args.scale = DrawsOf(activation.dropout).scale;
  args.out = out.data_ptr<float>();
  ThrowIfError(activation.device->ActivateGradient(kDefaultStream, args));
  return out;
}

}  // namespace internal
}  // namespace rhizome
