#include "gnn/ops/attention_passes.h"

#include <utility>
#include <vector>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/activation.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/head_dots.h"

// The two passes of attention on the CPU:
// 1. AttendForward runs the kernel `attend` on runs of targets.
// 2. AttentionGradient: the constructor computes the statistics of targets (attend_stats).
//    OfSources computes the gradients of source rows over the transposed lists, and stores the
//    gradient of each edge's score. Targets sums these per target, and adds up the groups' sums of
//    the attention vectors' gradient.

namespace rhizome {
inline namespace internal {
namespace {

std::size_t Extent(std::int64_t number) { return static_cast<std::size_t>(number); }

const float* DataOrNull(const torch::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

AttendDropout DropoutOf(const AttentionShape& shape) {
  const DropoutDraws draws = DrawsOf(shape.dropout);
  return {.dropped = draws.dropped, .scale = draws.scale, .seed = shape.seed, .first_target = 0};
}

}  // namespace

void KeepAttention(torch::autograd::AutogradContext& context, const AggregateLists& lists,
                   const AttentionShape& shape) {
  auto& data = context.saved_data;
  data["lists"] = reinterpret_cast<std::int64_t>(&lists);
  data["heads"] = shape.heads;
  data["slope"] = shape.slope;
  data["own"] = shape.own;
  data["dropout"] = shape.dropout;
  data["seed"] = static_cast<std::int64_t>(shape.seed);
}

const AggregateLists& KeptLists(const torch::autograd::AutogradContext& context) {
  return *reinterpret_cast<const AggregateLists*>(context.saved_data.at("lists").toInt());
}

AttentionShape KeptShape(const torch::autograd::AutogradContext& context) {
  const auto& data = context.saved_data;
  return {.heads = data.at("heads").toInt(),
          .slope = data.at("slope").toDouble(),
          .own = data.at("own").toBool(),
          .dropout = data.at("dropout").toDouble(),
          .seed = static_cast<std::uint64_t>(data.at("seed").toInt())};
}

Attended AttendForward(const AttentionInputs& in, const AggregateLists& lists,
                       const AttentionShape& shape) {
  const CsrView& csr = lists.csr();
  const RowsView rows = RowsOf(in.values);
  const std::size_t columns = rows.dim / AttendParts(in.score());
  Attended made{.out = at::empty({lists.targets(), static_cast<std::int64_t>(columns)}),
                .maximum = at::empty({lists.targets(), shape.heads}),
                .denominator = at::empty({lists.targets(), shape.heads})};
  AttendArgs args;
  args.score = in.score();
  args.type = rows.type;
  args.x = rows.x;
  args.x_stride = rows.stride;
  args.heads = Extent(shape.heads);
  args.width = columns / args.heads;
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
  args.out_stride = columns;
  ForTargets(csr, [&](std::size_t begin, std::size_t end) { Kernels().attend(args, begin, end); });
  return made;
}

namespace {

torch::Tensor StatsOf(const AttentionInputs& in, const Attended& made,
                      const AttendedGradient& gradient, const CsrView& csr, std::size_t heads) {
  const auto columns = static_cast<std::int64_t>(AttendStatsSize(in.score(), heads));
  torch::Tensor out = at::empty({made.maximum.size(0), columns});
  const bool additive = in.score() == AttendScore::kAdditive;
  const AttendStatsArgs stats{.score = in.score(),
                              .heads = heads,
                              .width = Extent(gradient.out.size(1)) / heads,
                              .maximum = made.maximum.data_ptr<float>(),
                              .denominator = made.denominator.data_ptr<float>(),
                              .query = additive ? in.query.data_ptr<float>() : nullptr,
                              .out = made.out.data_ptr<float>(),
                              .gradient = gradient.out.data_ptr<float>(),
                              .stats = out.data_ptr<float>()};
  ForTargets(
      csr, [&](std::size_t begin, std::size_t end) { Kernels().attend_stats(stats, begin, end); });
  return out;
}

/// As above for kDot, from known dot products.
torch::Tensor KnownStats(const Attended& made, const torch::Tensor& dots) {
  const std::size_t heads = Extent(dots.size(1));
  const std::size_t columns = AttendStatsSize(AttendScore::kDot, heads);
  torch::Tensor out = at::empty({dots.size(0), static_cast<std::int64_t>(columns)});
  const float* const maximum = made.maximum.data_ptr<float>();
  const float* const denominator = made.denominator.data_ptr<float>();
  const float* const dot = dots.data_ptr<float>();
  for (std::size_t t = 0; t < Extent(dots.size(0)); ++t) {
    float* const to = out.data_ptr<float>() + t * columns;
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = t * heads + h;
      to[h] = maximum[at];
      to[heads + h] = denominator[at] == 0 ? 0 : 1 / denominator[at];
      to[2 * heads + h] = dot[at];
    }
  }
  return out;
}

}  // namespace

AttentionGradient::AttentionGradient(const AttentionInputs& in, const Attended& made,
                                     const AttendedGradient& gradient, const AggregateLists& lists,
                                     const AttentionShape& shape)
    : lists_(lists), in_(in), gradient_(gradient) {
  const CsrView& csr = lists.csr();
  const TransposedCsr& turned = lists.turned();
  const bool additive = in.score() == AttendScore::kAdditive;
  const std::size_t heads = Extent(shape.heads);
  const std::size_t width = Extent(gradient.out.size(1)) / heads;
  stats_ = gradient.dots.defined() ? KnownStats(made, gradient.dots)
                                   : StatsOf(in, made, gradient, csr, heads);
  const auto edges = static_cast<std::int64_t>(csr.neighbors.size());
  const std::int64_t own = shape.own ? lists.targets() : 0;
  edge_gradient_ = at::empty({edges, shape.heads});
  own_gradient_ = at::empty({own, shape.heads});
  if (additive) source_ = at::empty(in.source.sizes());
  if (in.attention.defined()) {
    of_vectors_ = at::zeros(
        {static_cast<std::int64_t>(kVectorGroups), in.attention.size(0), in.attention.size(1)});
  }
  args_.score = in.score();
  args_.heads = heads;
  args_.width = width;
  args_.source = DataOrNull(in.source);
  args_.query = in.query.data_ptr<float>();
  args_.attention = DataOrNull(in.attention);
  args_.slope = static_cast<float>(shape.slope);
  args_.own = Extent(own);
  args_.dropout = DropoutOf(shape);
  args_.stats = stats_.data_ptr<float>();
  args_.gradient = gradient_.out.data_ptr<float>();
  args_.begins = csr.offsets.data();
  args_.ends = csr.offsets.data() + 1;
  args_.index = csr.neighbors.data();
  args_.transposed_begins = turned.lists.offsets.data();
  args_.turned_ends = turned.lists.offsets.data() + 1;
  args_.target = turned.lists.neighbors.data();
  args_.edge = turned.edges.data();
  args_.edge_count = static_cast<std::uint32_t>(edges);
  args_.source_gradient = additive ? source_.data_ptr<float>() : nullptr;
  args_.edge_gradient = edge_gradient_.data_ptr<float>();
  args_.own_gradient = own_gradient_.data_ptr<float>();
}

/// Returns the arguments of a group, which has its own partial sum of the vectors' gradient.
AttendGradientArgs AttentionGradient::GroupArgs(std::size_t group) const {
  AttendGradientArgs args = args_;
  if (of_vectors_.defined())
    args.attention_gradient = of_vectors_.data_ptr<float>() + group * args.heads * args.width;
  return args;
}

void AttentionGradient::OfSources(std::size_t group, std::size_t first, std::size_t count,
                                  const float* values, float* out) const {
  // The kernel counts sources from 0, so the arrays are advanced to the first source.
  AttendGradientArgs args = GroupArgs(group);
  args.first_source = first;
  args.transposed_begins += first;
  args.turned_ends += first;
  args.x = values;
  args.x_gradient = out;
  if (source_.defined()) {
    args.source += first * args.heads;
    args.source_gradient += first * args.heads;
  }
  Kernels().attend_source_gradient(args, 0, count);
}

AttentionGradient::OfTargets AttentionGradient::Targets(const torch::Tensor& query) const {
  OfTargets out{.query = query.defined() ? query : at::empty(in_.query.sizes()), .attention = {}};
  const std::vector<std::size_t> cuts = SplitByEdges(lists_.csr(), kVectorGroups);
  ComputeFor(kVectorGroups, [&](std::size_t group) {
    AttendGradientArgs args = GroupArgs(group);
    args.x = DataOrNull(in_.values);
    args.query_gradient = out.query.data_ptr<float>();
    Kernels().attend_query_gradient(args, cuts[group], cuts[group + 1]);
  });
  if (of_vectors_.defined()) out.attention = SumOfGroups(of_vectors_);
  return out;
}

}  // namespace internal
}  // namespace rhizome
