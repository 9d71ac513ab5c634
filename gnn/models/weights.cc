#include "gnn/models/weights.h"

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

/// Applies a batch norm with the statistics of the graph, if they are known. Records its input.
torch::Tensor OfGraph(const NormWeights& norm, const torch::Tensor& x, GraphNorms& norms) {
  const std::size_t number = norms.given.size();
  norms.norms.push_back(&norm);
  norms.given.push_back(x);
  if (number >= norms.known.size()) return x;
  const GraphNorms::Statistics& statistics = norms.known[number];
  return (x - statistics.mean) * at::rsqrt(statistics.variance + kEpsilon) * norm.weight +
         norm.bias;
}

}  // namespace

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

void NormWeights::Keep(const GraphNorms::Statistics& statistics, std::int64_t rows) const {
  const torch::NoGradGuard guard;
  const double unbiased = static_cast<double>(rows) / static_cast<double>(rows - 1);
  torch::Tensor kept_mean = mean, kept_variance = variance;  // handles of the same tensors
  kept_mean.mul_(1 - kMomentum).add_(statistics.mean, kMomentum);
  kept_variance.mul_(1 - kMomentum).add_(statistics.variance, kMomentum * unbiased);
}

torch::Tensor NormWeights::Of(const torch::Tensor& x, const RunMode& mode) const {
  if (!mean.defined()) return at::layer_norm(x, {x.size(1)}, weight, bias, kEpsilon);
  if (mode.norms != nullptr) return OfGraph(*this, x, *mode.norms);
  const bool learns = mode.training() && x.size(0) > 1;
  return at::batch_norm(x, weight, bias, mean, variance,
                        learns || RHIZOME_MUTANT("batch norm uses the batch at inference"),
                        kMomentum, kEpsilon,
                        /*cudnn_enabled=*/false);
}

}  // namespace internal
}  // namespace rhizome
