#include "rhizome/gnn/weights.h"

#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {

using Fill = WeightSpec::Fill;

void DenseWeights::Visit(const std::string& name, std::int64_t in, std::int64_t out,
                         const WeightVisitor& visit) {
  visit({.name = name + ".weight", .shape = {out, in}}, weight);
  visit({.name = name + ".bias", .shape = {out}, .fill = Fill::kZeros}, bias);
}

void NormWeights::Visit(Normalization kind, const std::string& name, std::int64_t width,
                        const WeightVisitor& visit) {
  visit({.name = name + ".weight", .shape = {width}, .fill = Fill::kOnes}, weight);
  visit({.name = name + ".bias", .shape = {width}, .fill = Fill::kZeros}, bias);
  if (kind != Normalization::kBatch) return;
  visit({.name = name + ".mean", .shape = {width}, .fill = Fill::kZeros, .trained = false}, mean);
  visit({.name = name + ".variance", .shape = {width}, .fill = Fill::kOnes, .trained = false},
        variance);
}

torch::Tensor NormWeights::Of(const torch::Tensor& x, const RunMode& mode) const {
  constexpr double kEpsilon = 1e-5;
  constexpr double kMomentum = 0.1;
  if (!mean.defined()) return at::layer_norm(x, {x.size(1)}, weight, bias, kEpsilon);
  return at::batch_norm(
      x, weight, bias, mean, variance,
      mode.training() || RHIZOME_MUTANT("batch norm looks at the batch at inference"), kMomentum,
      kEpsilon,
      /*cudnn_enabled=*/false);
}

}  // namespace rhizome::inline internal
