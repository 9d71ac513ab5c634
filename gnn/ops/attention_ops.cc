#include "rhizome/gnn/attention_ops.h"

#include <algorithm>
#include <vector>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/head_dots.h"

namespace rhizome::inline internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::size_t Extent(std::int64_t number) { return static_cast<std::size_t>(number); }

const float* DataOrNull(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

AttendDropout DropoutOf(const AttentionShape& shape) {
  const DropoutDraws draws = DrawsOf(shape.dropout);
  return {.dropped = draws.dropped, .scale = draws.scale, .seed = shape.seed, .first_target = 0};
}

/// The tensors that an attention reads, contiguous. `source` is undefined for additive-v2, and
/// `attention` for additive scores.
struct AttentionInputs {
  torch::Tensor values, source, query, attention;

  AttendScore score() const {
    return source.defined() ? AttendScore::kAdditive : AttendScore::kAdditiveV2;
  }
};

/// The results of the forward pass.
struct Attended {
  torch::Tensor out, maximum, denominator;
};

Attended AttendForward(const AttentionInputs& in, const AggregateLists& lists,
                       const AttentionShape& shape) {
  const CsrView& csr = lists.csr();
  const RowsView rows = RowsOf(in.values);
  Attended made{.out = at::empty({lists.targets(), in.values.size(1)}),
                .maximum = at::empty({lists.targets(), shape.heads}),
                .denominator = at::empty({lists.targets(), shape.heads})};
  AttendArgs args;
  args.score = in.score();
  args.type = rows.type;
  args.x = rows.x;
  args.x_stride = rows.stride;
  args.heads = Extent(shape.heads);
  args.width = rows.dim / args.heads;
  args.begins = csr.offsets.data();
  args.ends = csr.offsets.data() + 1;
  args.index = csr.neighbors.data();
  args.index_end = static_cast<std::uint32_t>(csr.neighbors.size());
  args.source = DataOrNull(in.source);
  args.source_stride = args.heads;
  args.query = in.query.data_ptr<float>();
  args.query_stride = Extent(in.query.size(1));
  args.attention = DataOrNull(in.attention);
  args.slope = static_cast<float>(shape.slope);
  torch::Tensor own;
  if (shape.own) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    own = in.values.narrow(0, 0, lists.targets()).to(torch::kFloat32);
    args.own = own.data_ptr<float>();
    args.own_stride = rows.dim;
    args.own_source = args.source;
    args.own_source_stride = args.heads;
  }
  args.dropout = DropoutOf(shape);
  args.finish = true;
  args.maximum = made.maximum.data_ptr<float>();
  args.denominator = made.denominator.data_ptr<float>();
  args.out = made.out.data_ptr<float>();
  args.out_stride = rows.dim;
  ForTargets(csr, [&](std::size_t begin, std::size_t end) { Kernels().attend(args, begin, end); });
  return made;
}

/// The gradients of the inputs, each defined where AttentionInputs' is.
AttentionInputs AttendBackward(const AttentionInputs& in, const Attended& made,
                               const torch::Tensor& gradient, const AggregateLists& lists,
                               const AttentionShape& shape) {
  const CsrView& csr = lists.csr();
  const TurnedCsr& turned = lists.turned();
  const bool additive = in.score() == AttendScore::kAdditive;
  const std::size_t heads = Extent(shape.heads);
  const std::size_t width = Extent(in.values.size(1)) / heads;
  torch::Tensor stats =
      at::empty({lists.targets(), static_cast<std::int64_t>(AttendStatsSize(in.score(), heads))});
  const AttendStatsArgs stats_args{.score = in.score(),
                                   .heads = heads,
                                   .width = width,
                                   .maximum = made.maximum.data_ptr<float>(),
                                   .denominator = made.denominator.data_ptr<float>(),
                                   .query = additive ? in.query.data_ptr<float>() : nullptr,
                                   .out = made.out.data_ptr<float>(),
                                   .gradient = gradient.data_ptr<float>(),
                                   .stats = stats.data_ptr<float>()};
  ForTargets(csr, [&](std::size_t begin, std::size_t end) {
    Kernels().attend_stats(stats_args, begin, end);
  });

  const auto edges = static_cast<std::int64_t>(csr.neighbors.size());
  const std::int64_t own = shape.own ? lists.targets() : 0;
  const torch::Tensor edge_gradient = at::empty({edges, shape.heads});
  const torch::Tensor own_gradient = at::empty({own, shape.heads});
  AttentionInputs out;
  out.values = at::empty(in.values.sizes());
  out.query = at::empty(in.query.sizes());
  if (additive) out.source = at::empty(in.source.sizes());
  AttendGradientArgs args;
  args.score = in.score();
  args.heads = heads;
  args.width = width;
  args.x = in.values.data_ptr<float>();
  args.source = DataOrNull(in.source);
  args.query = in.query.data_ptr<float>();
  args.attention = DataOrNull(in.attention);
  args.slope = static_cast<float>(shape.slope);
  args.own = Extent(own);
  args.dropout = DropoutOf(shape);
  args.stats = stats.data_ptr<float>();
  args.gradient = gradient.data_ptr<float>();
  args.begins = csr.offsets.data();
  args.ends = csr.offsets.data() + 1;
  args.index = csr.neighbors.data();
  args.turned_begins = turned.lists.offsets.data();
  args.turned_ends = turned.lists.offsets.data() + 1;
  args.target = turned.lists.neighbors.data();
  args.edge = turned.edges.data();
  args.edge_count = static_cast<std::uint32_t>(edges);
  args.x_gradient = out.values.data_ptr<float>();
  args.source_gradient = additive ? out.source.data_ptr<float>() : nullptr;
  args.edge_gradient = edge_gradient.data_ptr<float>();
  args.own_gradient = own_gradient.data_ptr<float>();
  args.query_gradient = out.query.data_ptr<float>();
  ForTargets(turned.lists.view(), [&](std::size_t begin, std::size_t end) {
    Kernels().attend_source_gradient(args, begin, end);
  });
  if (additive) {
    ForTargets(csr, [&](std::size_t begin, std::size_t end) {
      Kernels().attend_query_gradient(args, begin, end);
    });
    return out;
  }
  const std::vector<std::size_t> cuts = SplitByEdges(csr, kVectorGroups);
  torch::Tensor groups = at::zeros(
      {static_cast<std::int64_t>(kVectorGroups), shape.heads, static_cast<std::int64_t>(width)});
  ComputeFor(kVectorGroups, [&](std::size_t g) {
    AttendGradientArgs group = args;
    group.attention_gradient = groups.data_ptr<float>() + g * heads * width;
    Kernels().attend_query_gradient(group, cuts[g], cuts[g + 1]);
  });
  out.attention = SumOfGroups(groups);
  return out;
}

/// The inputs of an operation as `score` orders them, each of which has a gradient.
AttentionInputs InputsOf(AttendScore score, const torch::Tensor& values,
                         const torch::Tensor& second, const torch::Tensor& third) {
  if (score == AttendScore::kAdditive) return {values, second, third, {}};
  return {values, {}, second, third};
}

/// Forward keeps the tensors that it read and made; lists are kept by address, as the context keeps
/// tensors and plain values only.
struct AttendFunction : torch::autograd::Function<AttendFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& values,
                               const torch::Tensor& second, const torch::Tensor& third,
                               AttendScore score, const AggregateLists* lists,
                               const AttentionShape* shape) {
    const variable_list dense = {values.contiguous(), second.contiguous(), third.contiguous()};
    const Attended made =
        AttendForward(InputsOf(score, dense[0], dense[1], dense[2]), *lists, *shape);
    context->save_for_backward(
        {dense[0], dense[1], dense[2], made.out, made.maximum, made.denominator});
    auto& data = context->saved_data;
    data["score"] = static_cast<std::int64_t>(score);
    data["lists"] = reinterpret_cast<std::int64_t>(lists);
    data["heads"] = shape->heads;
    data["slope"] = shape->slope;
    data["own"] = shape->own;
    data["dropout"] = shape->dropout;
    data["seed"] = static_cast<std::int64_t>(shape->seed);
    return made.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto& data = context->saved_data;
    const auto score = static_cast<AttendScore>(data.at("score").toInt());
    const AttentionShape shape{.heads = data.at("heads").toInt(),
                               .slope = data.at("slope").toDouble(),
                               .own = data.at("own").toBool(),
                               .dropout = data.at("dropout").toDouble(),
                               .seed = static_cast<std::uint64_t>(data.at("seed").toInt())};
    const auto& lists = *reinterpret_cast<const AggregateLists*>(data.at("lists").toInt());
    const AttentionInputs out =
        AttendBackward(InputsOf(score, saved[0], saved[1], saved[2]),
                       {saved[3], saved[4], saved[5]}, gradients[0].contiguous(), lists, shape);
    if (score == AttendScore::kAdditive) return {out.values, out.source, out.query, {}, {}, {}};
    return {out.values, out.query, out.attention, {}, {}, {}};
  }
};

void CheckAttention(const torch::Tensor& values, const AggregateLists& lists,
                    const AttentionShape& shape) {
  TORCH_CHECK(shape.heads >= 1 && Extent(shape.heads) <= kMaxHeads, "attention: ", shape.heads,
              " heads; there may be 1 to ", kMaxHeads);
  TORCH_CHECK(values.dim() == 2 && values.size(0) == lists.sources() &&
                  values.size(1) % shape.heads == 0 && values.size(1) > 0,
              "attention: values must be [", lists.sources(), ", a multiple of ", shape.heads,
              " heads]");
  TORCH_CHECK(shape.slope >= 0 && shape.slope <= 1, "attention: a slope of ", shape.slope,
              "; it must be in [0, 1]");
  TORCH_CHECK(shape.dropout >= 0 && shape.dropout < 1, "attention: a dropout of ", shape.dropout,
              "; it must be in [0, 1)");
  TORCH_CHECK(!shape.own || lists.targets() <= lists.sources(),
              "attention: targets with own edges must be the first sources");
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

torch::Tensor AttendV2(const torch::Tensor& values, const torch::Tensor& query,
                       const torch::Tensor& attention, const AggregateLists& lists,
                       const AttentionShape& shape) {
  CheckAttention(values, lists, shape);
  CheckMatrix(query, "rows of targets", lists.targets(), values.size(1));
  CheckMatrix(attention, "vectors of the scores", shape.heads, values.size(1) / shape.heads);
  return AttendFunction::apply(AsTrained(values), query, attention, AttendScore::kAdditiveV2,
                               &lists, &shape);
}

}  // namespace rhizome::inline internal
