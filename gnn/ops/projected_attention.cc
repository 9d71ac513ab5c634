#include "gnn/ops/projected_attention.h"

#include <algorithm>
#include <cstring>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/attention_passes.h"
#include "gnn/ops/head_dots.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Saves in the context what is needed besides tensors; `place` is saved by address.
void Keep(AutogradContext* context, const LayerRows& x, const AggregateLists& lists,
          const AttentionShape& shape) {
  KeepAttention(*context, lists, shape);
  auto& data = context->saved_data;
  data["place"] = reinterpret_cast<std::int64_t>(x.place.data());
  data["places"] = static_cast<std::int64_t>(x.place.size());
}

LayerRows FixedRowsPolicy(AutogradContext* context, const torch::Tensor& table) {
  const auto& data = context->saved_data;
  return {table,
          {reinterpret_cast<const std::uint32_t*>(data.at("place").toInt()),
           static_cast<std::size_t>(data.at("places").toInt())}};
}

/// Rows [first, first + count) of one tile.
struct RowTile {
  std::int64_t number, first, count;
};

/// Calls body(tile) for a run of tiles of `rows` rows.
template <typename Body>
void ForRowTiles(std::int64_t begin, std::int64_t end, std::int64_t rows, const Body& body) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  for (std::int64_t number = begin; number < end; ++number) {
    const std::int64_t first = number * kDenseRows;
    body(RowTile{number, first, std::min(kDenseRows, rows - first)});
  }
}

/// Calls body(tile) for all tiles of `rows` rows, on the compute threads.
template <typename Body>
void ForAllTiles(std::int64_t rows, const Body& body) {
  ComputeFor(static_cast<std::size_t>(DenseTiles(rows)), [&](std::size_t i) {
    const auto number = static_cast<std::int64_t>(i);
    ForRowTiles(number, number + 1, rows, body);
  });
}

/// Calls body(group, tile) for the tiles of each group of a weight gradient, on the compute
/// threads.
template <typename Body>
void ForGroupTiles(const WeightGradient& sums, std::int64_t rows, const Body& body) {
  ComputeFor(sums.groups(), [&](std::size_t group) {
    ForRowTiles(sums.FirstTile(group), sums.FirstTile(group + 1), rows,
                [&](const RowTile& tile) { body(group, tile); });
  });
}

float* ProductRow(const torch::Tensor& tensor, std::int64_t row) {
  return tensor.data_ptr<float>() + row * tensor.size(1);
}

/// The gradient of z for a tile of sources. It exists only while the tile is processed.
class TileGradient {
 public:
  TileGradient(const AttentionGradient& of, std::size_t group, const RowTile& tile,
               const torch::Tensor& z)
      : tile_(tile), z_(z), rows_(at::empty(z.sizes())) {
    const auto count = static_cast<std::size_t>(tile.count);
    of.OfSources(group, static_cast<std::size_t>(tile.first), count, z.data_ptr<float>(),
                 rows_.data_ptr<float>());
  }

  /// Adds the gradient through scores [sources, heads] that are dot products with `vectors`, and
  /// adds the gradient of the vectors to `of_vectors`.
  void AddScores(const torch::Tensor& scores, const torch::Tensor& vectors,
                 const torch::Tensor& of_vectors) {
    HeadDotsGradientArgs args;
    args.x = z_.data_ptr<float>();
    args.heads = static_cast<std::size_t>(vectors.size(0));
    args.width = static_cast<std::size_t>(vectors.size(1));
    args.vectors = vectors.data_ptr<float>();
    args.gradient = ProductRow(scores, tile_.first);
    args.keep = true;
    args.x_gradient = rows_.data_ptr<float>();
    args.vector_gradient = of_vectors.data_ptr<float>();
    Kernels().head_dots_gradient(args, 0, static_cast<std::size_t>(tile_.count));
  }

  const torch::Tensor& rows() const { return rows_; }

 private:
  const RowTile tile_;
  const torch::Tensor z_;
  torch::Tensor rows_;
};

/// Accumulates the gradients of x and W from the gradients of tiles of z.
class ProjectionGradient {
  static_assert(WeightGradient::kMost <= kVectorGroups, "groups must be groups of vectors too");

 public:
  /// `weight`: [out, in].
  ProjectionGradient(const LayerRows& x, const torch::Tensor& weight, bool needs_x)
      : x_(x), sums_(x.size(), weight.size(0), weight.size(1)) {
    // Rows with `place` set are features, which need no gradient.
    if (!needs_x || !x.place.empty()) return;
    turned_ = PackedWeight(weight.t());
    x_gradient_ = at::empty(x.table.sizes());
  }

  const WeightGradient& sums() const { return sums_; }
  const torch::Tensor& x() const { return x_gradient_; }

  /// `gradient`: gradient of the tile's rows of z.
  void Add(std::size_t group, const RowTile& tile, const torch::Tensor& gradient) {
    const LayerRows rows{gradient};
    sums_.Add(group, gradient.data_ptr<float>(), ProductTile(x_, tile.number).rows(), tile.count);
    if (!x_gradient_.defined()) return;
    MultiplyRows(ProductTile(rows, 0).rows(), tile.count, turned_, {},
                 ProductRow(x_gradient_, tile.first));
  }

 private:
  const LayerRows& x_;
  PackedWeight turned_;
  WeightGradient sums_;
  torch::Tensor x_gradient_;
};

/// GAT as an autograd function.
/// 1. forward: computes z and the scores of both ends tile by tile, then attends.
/// 2. backward: for each tile of sources, recomputes z, and computes its gradient through the edges
///    and through the scores of sources. The scores of targets are linear in x, so their part needs
///    no z: with their gradient g [targets, heads], the gradient of W is the outer product of
///    vectors and g^T x.
struct ProjectedFunction : torch::autograd::Function<ProjectedFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const torch::Tensor& source_vectors,
                               const torch::Tensor& target_vectors, const LayerRows* given,
                               const AggregateLists* lists, const AttentionShape* shape) {
    const LayerRows x{table.contiguous(), given->place};
    const variable_list dense = {weight.contiguous(), source_vectors.contiguous(),
                                 target_vectors.contiguous()};
    AttentionInputs in;
    in.values = at::empty({x.size(), weight.size(0)});
    in.source = at::empty({x.size(), shape->heads});
    in.query = at::empty({lists->targets(), shape->heads});
    const PackedWeight packed(weight);
    ForAllTiles(x.size(), [&](const RowTile& tile) {
      const torch::Tensor z = in.values.narrow(0, tile.first, tile.count);
      MultiplyRows(ProductTile(x, tile.number).rows(), tile.count, packed, {}, z.data_ptr<float>());
      HeadDotsOfRows(RowsOf(z), static_cast<std::size_t>(tile.count), dense[1],
                     ProductRow(in.source, tile.first));
      const std::int64_t asking = std::min(tile.count, lists->targets() - tile.first);
      if (asking <= 0) return;
      HeadDotsOfRows(RowsOf(z), static_cast<std::size_t>(asking), dense[2],
                     ProductRow(in.query, tile.first));
    });
    const Attended made = AttendForward(in, *lists, *shape);
    context->save_for_backward({x.table, dense[0], dense[1], dense[2], in.source, in.query,
                                made.out, made.maximum, made.denominator});
    Keep(context, x, *lists, *shape);
    return made.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const LayerRows x = FixedRowsPolicy(context, saved[0]);
    const torch::Tensor &weight = saved[1], &source_vectors = saved[2], &target_vectors = saved[3];
    const AggregateLists& lists = KeptLists(*context);
    const AttentionGradient of({{}, saved[4], saved[5], {}}, {saved[6], saved[7], saved[8]},
                               {gradients[0].contiguous()}, lists, KeptShape(*context));
    ProjectionGradient through(x, weight, context->needs_input_grad(0));
    const auto groups = static_cast<std::int64_t>(through.sums().groups());
    const torch::Tensor of_vectors =
        at::zeros({groups, source_vectors.size(0), source_vectors.size(1)});
    const PackedWeight packed(weight);
    ForGroupTiles(through.sums(), x.size(), [&](std::size_t group, const RowTile& tile) {
      const torch::Tensor z = at::empty({tile.count, weight.size(0)});
      MultiplyRows(ProductTile(x, tile.number).rows(), tile.count, packed, {}, z.data_ptr<float>());
      TileGradient gradient(of, group, tile, z);
      gradient.AddScores(of.source(), source_vectors,
                         of_vectors.select(0, static_cast<std::int64_t>(group)));
      through.Add(group, tile, gradient.rows());
    });
    const torch::Tensor query = of.Targets().query;
    const torch::Tensor dots = GradientDots(x.First(lists.targets()), query);  // [heads, 1, in]
    const torch::Tensor by_head =
        weight.view({source_vectors.size(0), source_vectors.size(1), weight.size(1)});
    if (through.x().defined()) AddThroughQuery(query, by_head, target_vectors, through.x());
    const torch::Tensor of_weight =
        through.sums().Weight() + (target_vectors.unsqueeze(2) * dots).view_as(weight);
    return {through.x(), of_weight, SumOfGroups(of_vectors), (by_head * dots).sum(2), {}, {}, {}};
  }

 private:
  /// Returns gradient^T x.
  static torch::Tensor GradientDots(const LayerRows& x, const torch::Tensor& gradient) {
    WeightGradient sums(x.size(), gradient.size(1), x.table.size(1));
    ForGroupTiles(sums, x.size(), [&](std::size_t group, const RowTile& tile) {
      sums.Add(group, ProductRow(gradient, tile.first), ProductTile(x, tile.number).rows(),
               tile.count);
    });
    return sums.Weight().unsqueeze(1);
  }

  static void AddThroughQuery(const torch::Tensor& query, const torch::Tensor& by_head,
                              const torch::Tensor& vectors, const torch::Tensor& x_gradient) {
    const PackedWeight turned((by_head * vectors.unsqueeze(2)).sum(1).t());
    ForAllTiles(query.size(0), [&](const RowTile& tile) {
      const torch::Tensor of_tile = query.narrow(0, tile.first, tile.count);
      x_gradient.narrow(0, tile.first, tile.count).add_(Multiply(of_tile, turned, {}));
    });
  }
};

/// GATv2 as an autograd function. The targets read z in the backward pass, too, so z is kept.
struct ProjectedV2Function : torch::autograd::Function<ProjectedV2Function> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const torch::Tensor& query, const torch::Tensor& attention,
                               const LayerRows* given, const AggregateLists* lists,
                               const AttentionShape* shape) {
    const LayerRows x{table.contiguous(), given->place};
    const torch::Tensor dense = weight.contiguous();
    AttentionInputs in{.values = at::empty({x.size(), weight.size(0)}),
                       .source = {},
                       .query = query.contiguous(),
                       .attention = attention.contiguous()};
    const PackedWeight packed(weight);
    ForAllTiles(x.size(), [&](const RowTile& tile) {
      MultiplyRows(ProductTile(x, tile.number).rows(), tile.count, packed, bias,
                   ProductRow(in.values, tile.first));
    });
    const Attended made = AttendForward(in, *lists, *shape);
    context->save_for_backward({x.table, dense, in.values, in.query, in.attention, made.out,
                                made.maximum, made.denominator});
    Keep(context, x, *lists, *shape);
    return made.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const LayerRows x = FixedRowsPolicy(context, saved[0]);
    const LayerRows z{saved[2]};
    const AttentionGradient of({z.table, {}, saved[3], saved[4]}, {saved[5], saved[6], saved[7]},
                               {gradients[0].contiguous()}, KeptLists(*context),
                               KeptShape(*context));
    ProjectionGradient through(x, saved[1], context->needs_input_grad(0));
    ForGroupTiles(through.sums(), x.size(), [&](std::size_t group, const RowTile& tile) {
      const TileGradient gradient(of, group, tile, z.table.narrow(0, tile.first, tile.count));
      through.Add(group, tile, gradient.rows());
    });
    const AttentionGradient::OfTargets targets = of.Targets();
    return {through.x(),
            through.sums().Weight(),
            through.sums().Bias(),
            targets.query,
            targets.attention,
            {},
            {},
            {}};
  }
};

}  // namespace

torch::Tensor AttendProjected(const LayerRows& x, const torch::Tensor& weight,
                              const torch::Tensor& source_vectors,
                              const torch::Tensor& target_vectors, const AggregateLists& lists,
                              const AttentionShape& shape) {
  return ProjectedFunction::apply(x.table, weight, source_vectors, target_vectors, &x, &lists,
                                  &shape);
}

torch::Tensor AttendProjectedGatv2(const LayerRows& x, const torch::Tensor& weight,
                                   const torch::Tensor& bias, const torch::Tensor& query,
                                   const torch::Tensor& attention, const AggregateLists& lists,
                                   const AttentionShape& shape) {
  return ProjectedV2Function::apply(x.table, weight, bias, query, attention, &x, &lists, &shape);
}

}  // namespace internal
}  // namespace rhizome
