#include "gnn/train/task_loss.h"

#include <torch/nn/functional/loss.h>

#include <algorithm>

#include "cache/feed/compute_metrics.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

namespace nnf = torch::nn::functional;

/// Gathers rows of `from` [rows, columns] into a tensor [rows.size(), columns].
template <typename To, typename From>
torch::Tensor Gathered(const std::vector<From>& from, std::size_t columns,
                       std::span<const Row> rows, torch::Dtype dtype) {
  torch::Tensor gathered = torch::empty(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)}, dtype);
  To* out = gathered.data_ptr<To>();
  for (const Row row : rows) {
    const std::size_t first = static_cast<std::size_t>(row) * columns;
    for (std::size_t c = 0; c < columns; ++c) *out++ = static_cast<To>(from[first + c]);
  }
  return gathered;
}

/// Returns the sum of `values` where `known` is set.
torch::Tensor SumOfKnown(const torch::Tensor& values, const torch::Tensor& known) {
  return torch::where(known, values, torch::zeros({}, values.options())).sum();
}

/// Losses of several labels or numbers per row, and which of them are known.
struct KnownLosses {
  torch::Tensor values, known;
  torch::Tensor Mean() const { return SumOfKnown(values, known) / known.sum().clamp_min(1); }
};

KnownLosses LossesOf(const Labels& labels, const torch::Tensor& scores, std::span<const Row> rows) {
  if (labels.task == Task::kRegression) {
    const torch::Tensor values =
        Gathered<float>(labels.values, labels.columns, rows, torch::kFloat32).to(scores.device());
    return {(scores - values.nan_to_num()).square(), values.isnan().logical_not()};
  }
  const torch::Tensor flags =
      Gathered<float>(labels.flags, labels.columns, rows, torch::kFloat32).to(scores.device());
  torch::Tensor known = flags.ne(static_cast<float>(kMissingFlag));
  if (RHIZOME_MUTANT("missing labels are learnt")) known = known.logical_or(known.logical_not());
  return {
      nnf::binary_cross_entropy_with_logits(
          scores, flags, nnf::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone)),
      known};
}

bool HasClasses(const Labels& labels) {
  return labels.task == Task::kMulticlass || labels.task == Task::kBinary;
}

}  // namespace

TaskLoss::TaskLoss(const Labels& labels, const std::vector<float>& class_weights, double smoothing)
    : labels_(labels), smoothing_(smoothing) {
  if (!class_weights.empty()) class_weights_ = torch::tensor(at::ArrayRef<float>(class_weights));
}

torch::Tensor TaskLoss::Of(const torch::Tensor& scores, const Minibatch& minibatch) const {
  const auto rows = std::span(minibatch.rows).first(minibatch.seed_count);
  if (!HasClasses(labels_)) return LossesOf(labels_, scores, rows).Mean();
  const torch::Tensor classes = ClassesOf(rows).to(scores.device());
  return labels_.task == Task::kBinary ? OfBinary(scores, classes) : OfClasses(scores, classes);
}

torch::Tensor TaskLoss::SumOf(const torch::Tensor& scores, std::span<const Row> rows) const {
  if (!HasClasses(labels_)) {
    const KnownLosses losses = LossesOf(labels_, scores, rows);
    return SumOfKnown(losses.values, losses.known);
  }
  const torch::Tensor classes = ClassesOf(rows);
  if (labels_.task == Task::kBinary) {
    const torch::Tensor losses = BinaryLosses(scores, classes);
    return (class_weights_.defined() ? losses * class_weights_.index_select(0, classes) : losses)
        .sum();
  }
  nnf::CrossEntropyFuncOptions options;
  options.reduction(torch::kSum);
  if (class_weights_.defined()) options.weight(class_weights_);
  if (smoothing_ > 0) options.label_smoothing(smoothing_);
  return nnf::cross_entropy(scores, classes, options);
}

double TaskLoss::WeightOf(std::span<const Row> rows) const {
  if (!HasClasses(labels_)) {
    const torch::Tensor scores = torch::zeros(
        {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(labels_.columns)});
    return LossesOf(labels_, scores, rows).known.sum().item<double>();
  }
  if (!class_weights_.defined()) return static_cast<double>(rows.size());
  return class_weights_.index_select(0, ClassesOf(rows)).sum(torch::kFloat64).item<double>();
}

torch::Tensor TaskLoss::ClassesOf(std::span<const Row> rows) const {
  return Gathered<std::int64_t>(labels_.label, 1, rows, torch::kInt64).squeeze(1);
}

torch::Tensor TaskLoss::ClassWeightsAt(const torch::Tensor& scores) const {
  return class_weights_.defined() ? class_weights_.to(scores.device()) : class_weights_;
}

torch::Tensor TaskLoss::OfClasses(const torch::Tensor& scores, const torch::Tensor& classes) const {
  nnf::CrossEntropyFuncOptions options;
  if (class_weights_.defined()) options.weight(ClassWeightsAt(scores));
  if (smoothing_ > 0) options.label_smoothing(smoothing_);
  return nnf::cross_entropy(scores, classes, options);
}

torch::Tensor TaskLoss::BinaryTargets(const torch::Tensor& classes) const {
  return classes.to(torch::kFloat32) * (1 - smoothing_) +
         (RHIZOME_MUTANT("smoothing makes labels smaller") ? 0 : smoothing_ / 2);
}

torch::Tensor TaskLoss::BinaryLosses(const torch::Tensor& scores,
                                     const torch::Tensor& classes) const {
  nnf::BinaryCrossEntropyWithLogitsFuncOptions options;
  return nnf::binary_cross_entropy_with_logits(scores.squeeze(1), BinaryTargets(classes),
                                               options.reduction(torch::kNone));
}

torch::Tensor TaskLoss::OfBinary(const torch::Tensor& scores, const torch::Tensor& classes) const {
  if (!class_weights_.defined())
    return nnf::binary_cross_entropy_with_logits(scores.squeeze(1), BinaryTargets(classes));
  const torch::Tensor weights = ClassWeightsAt(scores).index_select(0, classes);
  const torch::Tensor losses = BinaryLosses(scores, classes);
  return (losses * weights).sum() / (RHIZOME_MUTANT("weighted losses are divided by vertices")
                                         ? at::ones({}) * losses.size(0)
                                         : weights.sum());
}

}  // namespace internal
}  // namespace rhizome
