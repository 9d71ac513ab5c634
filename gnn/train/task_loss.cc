#include "rhizome/gnn/task_loss.h"

#include <algorithm>

#include "rhizome/cache/compute_metrics.h"
#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

namespace nnf = torch::nn::functional;

/// Gathers the seeds' rows of `from` [rows, columns] as a tensor [seeds, columns].
template <typename To, typename From>
torch::Tensor SeedRows(const std::vector<From>& from, std::size_t columns,
                       const Minibatch& minibatch, torch::Dtype dtype) {
  const auto seeds = static_cast<std::int64_t>(minibatch.seed_count);
  torch::Tensor rows = torch::empty({seeds, static_cast<std::int64_t>(columns)}, dtype);
  To* out = rows.data_ptr<To>();
  for (std::uint64_t i = 0; i < minibatch.seed_count; ++i) {
    const std::size_t first = static_cast<std::size_t>(minibatch.rows[i]) * columns;
    for (std::size_t c = 0; c < columns; ++c) *out++ = static_cast<To>(from[first + c]);
  }
  return rows;
}

/// The mean of `values` where `known` is set; 0 where nothing is.
torch::Tensor MeanOfKnown(const torch::Tensor& values, const torch::Tensor& known) {
  const torch::Tensor zero = torch::zeros({}, values.options());
  return torch::where(known, values, zero).sum() / known.sum().clamp_min(1);
}

}  // namespace

TaskLoss::TaskLoss(const Labels& labels, const std::vector<float>& class_weights, double smoothing)
    : labels_(labels), smoothing_(smoothing) {
  if (!class_weights.empty()) class_weights_ = torch::tensor(at::ArrayRef<float>(class_weights));
}

torch::Tensor TaskLoss::Of(const torch::Tensor& scores, const Minibatch& minibatch) const {
  if (labels_.task == Task::kMultilabel) {
    const torch::Tensor flags =
        SeedRows<float>(labels_.flags, labels_.columns, minibatch, torch::kFloat32);
    torch::Tensor known = flags.ne(static_cast<float>(kMissingFlag));
    if (RHIZOME_MUTANT("missing labels are learnt")) known = known.logical_or(known.logical_not());
    const torch::Tensor losses = nnf::binary_cross_entropy_with_logits(
        scores, flags, nnf::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone));
    return MeanOfKnown(losses, known);
  }
  if (labels_.task == Task::kRegression) {
    const torch::Tensor values =
        SeedRows<float>(labels_.values, labels_.columns, minibatch, torch::kFloat32);
    const torch::Tensor known = values.isnan().logical_not();
    return MeanOfKnown((scores - values.nan_to_num()).square(), known);
  }
  const torch::Tensor classes =
      SeedRows<std::int64_t>(labels_.label, 1, minibatch, torch::kInt64).squeeze(1);
  return labels_.task == Task::kBinary ? OfBinary(scores, classes) : OfClasses(scores, classes);
}

torch::Tensor TaskLoss::OfClasses(const torch::Tensor& scores, const torch::Tensor& classes) const {
  nnf::CrossEntropyFuncOptions options;
  if (class_weights_.defined()) options.weight(class_weights_);
  if (smoothing_ > 0) options.label_smoothing(smoothing_);
  return nnf::cross_entropy(scores, classes, options);
}

torch::Tensor TaskLoss::OfBinary(const torch::Tensor& scores, const torch::Tensor& classes) const {
  const torch::Tensor targets =
      classes.to(torch::kFloat32) * (1 - smoothing_) +
      (RHIZOME_MUTANT("smoothing makes labels smaller") ? 0 : smoothing_ / 2);
  nnf::BinaryCrossEntropyWithLogitsFuncOptions options;
  if (!class_weights_.defined())
    return nnf::binary_cross_entropy_with_logits(scores.squeeze(1), targets, options);
  const torch::Tensor weights = class_weights_.index_select(0, classes);
  const torch::Tensor losses = nnf::binary_cross_entropy_with_logits(
      scores.squeeze(1), targets, options.reduction(torch::kNone));
  return (losses * weights).sum() / (RHIZOME_MUTANT("weighted losses are divided by vertices")
                                         ? at::ones({}) * losses.size(0)
                                         : weights.sum());
}

}  // namespace rhizome::inline internal
