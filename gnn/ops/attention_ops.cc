#include "gnn/ops/attention_ops.h"

#include <vector>

#include "cache/job/compute_threads.h"
#include "gnn/ops/attention_passes.h"
#include "gnn/ops/device_attention.h"
#include "gnn/ops/head_dots.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Returns the gradients of the inputs, each defined if the input is.
AttentionInputs AttendBackward(const AttentionInputs& in, const Attended& made,
                               const torch::Tensor& gradient, const AggregateLists& lists,
                               const AttentionShape& shape) {
  if (lists.uploads() != nullptr) return AttendGradientOnDevice(in, made, gradient, lists, shape);
  const AttentionGradient of(in, made, {.out = gradient}, lists, shape);
  AttentionInputs out;
  out.values = at::empty(in.values.sizes());
  const std::size_t dim = static_cast<std::size_t>(in.values.size(1));
  const std::vector<std::size_t> cuts = SplitByEdges(lists.turned().lists.view(), kVectorGroups);
  ComputeFor(kVectorGroups, [&](std::size_t group) {
    const std::size_t begin = cuts[group];
    of.OfSources(group, begin, cuts[group + 1] - begin, in.values.data_ptr<float>() + begin * dim,
                 out.values.data_ptr<float>() + begin * dim);
  });
  out.source = of.source();
  const AttentionGradient::OfTargets targets = of.Targets();
  out.query = targets.query;
  out.attention = targets.attention;
  return out;
}

/// Assembles the inputs of an operation from its three tensors with gradients, whose meaning
/// depends on `score`.
AttentionInputs InputsOf(AttendScore score, const torch::Tensor& values,
                         const torch::Tensor& second, const torch::Tensor& third) {
  if (score == AttendScore::kAdditive) return {values, second, third, {}};
  return {values, {}, second, third};
}

/// Attention as an autograd function. Forward saves its inputs and results.
struct AttendFunction : torch::autograd::Function<AttendFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& values,
                               const torch::Tensor& second, const torch::Tensor& third,
                               AttendScore score, const AggregateLists* lists,
                               const AttentionShape* shape) {
    const variable_list dense = {values.contiguous(), second.contiguous(), third.contiguous()};
    const AttentionInputs in = InputsOf(score, dense[0], dense[1], dense[2]);
    const Attended made = lists->uploads() != nullptr ? AttendOnDevice(in, *lists, *shape)
                                                      : AttendForward(in, *lists, *shape);
    context->save_for_backward(
        {dense[0], dense[1], dense[2], made.out, made.maximum, made.denominator});
    context->saved_data["score"] = static_cast<std::int64_t>(score);
    KeepAttention(*context, *lists, *shape);
    return made.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto score = static_cast<AttendScore>(context->saved_data.at("score").toInt());
    const AttentionInputs out = AttendBackward(
        InputsOf(score, saved[0], saved[1], saved[2]), {saved[3], saved[4], saved[5]},
        gradients[0].contiguous(), KeptLists(*context), KeptShape(*context));
    if (score == AttendScore::kAdditive) return {out.values, out.source, out.query, {}, {}, {}};
    return {out.values, out.query, out.attention, {}, {}, {}};
  }
};

void CheckAttention(const torch::Tensor& values, const AggregateLists& lists,
                    const AttentionShape& shape) {
  TORCH_CHECK(shape.heads >= 1 && static_cast<std::size_t>(shape.heads) <= kMaxHeads,
              "attention: ", shape.heads, " heads; there must be 1 to ", kMaxHeads);
  TORCH_CHECK(values.dim() == 2 && values.size(0) == lists.sources() &&
                  values.size(1) % shape.heads == 0 && values.size(1) > 0,
              "attention: values must be [", lists.sources(), ", a multiple of ", shape.heads,
              " heads]");
  TORCH_CHECK(shape.slope >= 0 && shape.slope <= 1, "attention: a slope of ", shape.slope,
              "; it must be in [0, 1]");
  TORCH_CHECK(shape.dropout >= 0 && shape.dropout < 1, "attention: a dropout of ", shape.dropout,
              "; it must be in [0, 1)");
  TORCH_CHECK(!shape.own || lists.targets() <= lists.sources(),
              "attention: with own edges, targets must be the first sources");
}

void CheckMatrix(const torch::Tensor& tensor, const char* name, std::int64_t rows,
                 std::int64_t columns) {
  TORCH_CHECK(tensor.dim() == 2 && tensor.size(0) == rows && tensor.size(1) == columns &&
                  tensor.scalar_type() == torch::kFloat32,
              "attention: ", name, " must be [", rows, ", ", columns, "], float32");
}

}  // namespace

torch::Tensor Attend(const torch::Tensor& values, const torch::Tensor& source,
                     const torch::Tensor& query, const AggregateLists& lists,
                     const AttentionShape& shape) {
  CheckAttention(values, lists, shape);
  CheckMatrix(source, "scores of sources", lists.sources(), shape.heads);
  CheckMatrix(query, "scores of targets", lists.targets(), shape.heads);
  return AttendFunction::apply(AsTrained(values), source, query, AttendScore::kAdditive, &lists,
                               &shape);
}

torch::Tensor AttendGatv2(const torch::Tensor& values, const torch::Tensor& query,
                          const torch::Tensor& attention, const AggregateLists& lists,
                          const AttentionShape& shape) {
  CheckAttention(values, lists, shape);
  CheckMatrix(query, "rows of targets", lists.targets(), values.size(1));
  CheckMatrix(attention, "vectors of the scores", shape.heads, values.size(1) / shape.heads);
  return AttendFunction::apply(AsTrained(values), query, attention, AttendScore::kGatv2, &lists,
                               &shape);
}

}  // namespace internal
}  // namespace rhizome
