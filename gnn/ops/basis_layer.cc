#include "gnn/ops/basis_layer.h"

#include <algorithm>
#include <vector>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/group_rows.h"

// For each tile of targets, the forward pass reduces the groups, sums them by basis beside the
// targets' own rows, multiplies the tile by the joined weight, and activates. The backward pass
// repeats the sums. From the gradient of a tile's products it computes the gradients of (1) the
// joined weight; (2) the sums, by a product; (3) the coefficients: dot products of the gradients of
// sums with the rows of groups; (4) the rows of groups, and from these the gradient of each source.

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Targets whose groups are reduced together, so that their rows remain in the core's cache.
constexpr std::size_t kReducedTargets = 32;

/// Lists of targets whose edges are groups, counted from the first target's first group.
struct ListsOfGroups {
  std::vector<std::uint32_t> offsets;  // [targets + 1]
  std::size_t groups = 0;
  std::size_t first = 0;  // first group

  ListsOfGroups(const GroupedLists& lists, std::size_t begin, std::size_t count)
      : first(lists.group_begin[begin]) {
    offsets.reserve(count + 1);
    for (std::size_t t = begin; t <= begin + count; ++t)
      offsets.push_back(lists.group_begin[t] - static_cast<std::uint32_t>(first));
    groups = offsets.back();
  }
};

/// Fills factors[g] with the coefficient of each group's relation for a basis.
void FillFactors(const GroupedLists& lists, std::size_t first, std::size_t count,
                 const torch::Tensor& coefficients, std::int64_t basis,
                 std::vector<float>& factors) {
  const float* const values = coefficients.data_ptr<float>() + basis;
  const auto bases = static_cast<std::size_t>(coefficients.size(1));
  factors.resize(count);
  for (std::size_t g = 0; g < count; ++g) factors[g] = values[lists.relation[first + g] * bases];
}

/// Fills a tile with [own row | sums by basis] of its targets. If `rows` is given, keeps the rows
/// of the tile's groups there.
void FillTile(const LayerRows& x, const GroupReducer& reducer, const GroupedLists& lists,
              const DenseTile& tile, const torch::Tensor& coefficients, std::vector<float>* kept,
              const torch::Tensor& out) {
  thread_local std::vector<float> temporary;
  std::vector<float>& rows = kept != nullptr ? *kept : temporary;
  const std::size_t columns = reducer.columns();
  const auto stride = static_cast<std::size_t>(out.size(1));
  float* const to = out.data_ptr<float>();
  const auto begin = static_cast<std::size_t>(tile.first);
  const auto end = begin + static_cast<std::size_t>(tile.count);
  const std::size_t first_group = lists.group_begin[begin];
  if (kept != nullptr) rows.resize((lists.group_begin[end] - first_group) * columns);
  for (std::size_t t = begin; t < end; t += kReducedTargets) {
    const std::size_t count = std::min(kReducedTargets, end - t);
    const std::size_t group = lists.group_begin[t];
    const std::size_t groups = lists.group_begin[t + count] - group;
    if (kept == nullptr && rows.size() < groups * columns) rows.resize(groups * columns);
    float* const reduced = rows.data() + (kept == nullptr ? 0 : (group - first_group) * columns);
    reducer.Reduce(group, groups, reduced);
    SumByBasis(reduced, columns, lists, t, count, coefficients, to + (t - begin) * stride + columns,
               stride);
  }
  x.Copy(tile.first, tile.count, to, stride);
}

/// Sums of gradients of coefficients, one for each group of tiles, added in order.
class CoefficientGradient {
 public:
  CoefficientGradient(std::size_t parts, const torch::Tensor& coefficients)
      : sums_(parts, std::vector<double>(static_cast<std::size_t>(coefficients.numel()), 0.0)),
        bases_(static_cast<std::size_t>(coefficients.size(1))) {}

  void Add(std::size_t part, std::size_t relation, std::size_t basis, float value) {
    sums_[part][relation * bases_ + basis] += double{value};
  }

  torch::Tensor Sum(at::IntArrayRef shape) const {
    torch::Tensor out = at::empty(shape);
    float* const to = out.data_ptr<float>();
    for (std::size_t i = 0; i < sums_.front().size(); ++i) {
      double sum = 0;
      for (const std::vector<double>& part : sums_) sum += part[i];
      to[i] = static_cast<float>(sum);
    }
    return out;
  }

 private:
  std::vector<std::vector<double>> sums_;
  std::size_t bases_;
};

struct BasisFunction : torch::autograd::Function<BasisFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& self, const torch::Tensor& bases,
                               const torch::Tensor& coefficients, const torch::Tensor& bias,
                               const LayerRows* x, const LayerGraph* graph,
                               const Activation* activation) {
    const LayerRows rows{table.contiguous(), x->place};
    const GroupReducer reducer(rows, *graph);
    const torch::Tensor factors = coefficients.contiguous();
    const PackedWeight packed(JoinedWeight(self, bases));
    const std::int64_t targets = graph->targets();
    torch::Tensor out = at::empty({targets, bias.size(0)});
    ComputeFor(static_cast<std::size_t>(DenseTiles(targets)), [&](std::size_t i) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const DenseTile tile = DenseTileAt(static_cast<std::int64_t>(i), targets);
      const torch::Tensor input = AnyTile(packed.in());
      FillTile(rows, reducer, graph->groups, tile, factors, nullptr, input);
      float* const to = out.data_ptr<float>() + tile.first * out.size(1);
      const LayerRows filled{input};
      MultiplyRows(ProductTile(filled, 0).rows(), tile.count, packed, bias, to);
      ActivateRows(*activation, to, tile.count, out.size(1), tile.first, to);
    });
    Keep(context, {rows.table, self, bases, factors, out}, *x, *graph, *activation);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const torch::Tensor gradient = gradients[0].contiguous();
    return Backward(context, gradient).Run();
  }

 private:
  static void Keep(AutogradContext* context, const variable_list& tensors, const LayerRows& x,
                   const LayerGraph& graph, const Activation& activation) {
    context->save_for_backward(tensors);
    auto& data = context->saved_data;
    data["place"] = reinterpret_cast<std::int64_t>(x.place.data());
    data["places"] = static_cast<std::int64_t>(x.place.size());
    data["graph"] = reinterpret_cast<std::int64_t>(&graph);
    data["relu"] = activation.relu;
    data["dropout"] = activation.dropout;
    data["seed"] = static_cast<std::int64_t>(activation.seed);
  }

  /// The backward pass of one call.
  class Backward {
   public:
    Backward(AutogradContext* context, const torch::Tensor& gradient)
        : saved_(context->get_saved_variables()),
          x_{saved_[0], PlaceOf(context)},
          graph_(*reinterpret_cast<const LayerGraph*>(context->saved_data["graph"].toInt())),
          activation_{.relu = context->saved_data["relu"].toBool(),
                      .dropout = context->saved_data["dropout"].toDouble(),
                      .seed = static_cast<std::uint64_t>(context->saved_data["seed"].toInt())},
          gradient_(gradient),
          reducer_(x_, graph_),
          columns_(saved_[0].size(1)),
          bases_(saved_[2].size(0)),
          width_((bases_ + 1) * columns_),
          wants_rows_(context->needs_input_grad(0) && x_.place.empty()) {
      for (std::int64_t b = 0; b < bases_; ++b)
        turned_.emplace_back(saved_[2].detach().select(0, b).t());
      if (!wants_rows_) return;
      turned_self_ = PackedWeight(saved_[1].detach().t());
      own_ = at::empty({graph_.targets(), columns_});
      of_groups_ = at::empty({static_cast<std::int64_t>(graph_.groups.groups()), columns_});
    }

    variable_list Run() {
      const std::int64_t targets = graph_.targets();
      WeightGradient sums(targets, gradient_.size(1), width_);
      CoefficientGradient coefficients(sums.groups(), saved_[3]);
      ComputeFor(sums.groups(), [&](std::size_t part) {
        const at::AutoDispatchBelowADInplaceOrView guard;
        const std::int64_t end = sums.FirstTile(part + 1);
        for (std::int64_t number = sums.FirstTile(part); number < end; ++number)
          AddTile(DenseTileAt(number, targets), part, sums, coefficients);
      });
      const torch::Tensor weight = sums.Weight();
      variable_list out(8);
      if (wants_rows_) out[0] = ReduceGroupsGradient(graph_, of_groups_, own_);
      out[1] = weight.narrow(1, 0, columns_);
      out[2] = weight.narrow(1, columns_, bases_ * columns_)
                   .reshape({weight.size(0), bases_, columns_})
                   .permute({1, 0, 2});
      out[3] = coefficients.Sum(saved_[3].sizes());
      out[4] = sums.Bias();
      return out;
    }

   private:
    static std::span<const std::uint32_t> PlaceOf(AutogradContext* context) {
      const auto& data = context->saved_data;
      return {reinterpret_cast<const std::uint32_t*>(data.at("place").toInt()),
              static_cast<std::size_t>(data.at("places").toInt())};
    }

    void AddTile(const DenseTile& tile, std::size_t part, WeightGradient& sums,
                 CoefficientGradient& coefficients) {
      thread_local std::vector<float> rows;
      const torch::Tensor input = AnyTile(width_);
      FillTile(x_, reducer_, graph_.groups, tile, saved_[3], &rows, input);
      const LayerRows filled{input};
      const std::int64_t outputs = gradient_.size(1);
      const LayerRows before{AnyTile(outputs)};
      float* const of_products = before.table.data_ptr<float>();
      ActivateGradientRows(activation_, saved_[4].data_ptr<float>() + tile.first * outputs,
                           gradient_.data_ptr<float>() + tile.first * outputs, tile.count, outputs,
                           tile.first, of_products);
      const ProductTile multiplied(before, 0);
      sums.Add(part, of_products, ProductTile(filled, 0).rows(), tile.count);
      OfSums(tile, multiplied.rows(), rows, part, coefficients);
      if (wants_rows_)
        MultiplyRows(multiplied.rows(), tile.count, turned_self_, {},
                     own_.data_ptr<float>() + tile.first * columns_);
    }

    /// Computes the gradients of the sums by basis, and from these the gradients of coefficients
    /// and of the rows of groups.
    void OfSums(const DenseTile& tile, const ProductRows& products, const std::vector<float>& rows,
                std::size_t part, CoefficientGradient& coefficients) {
      const GroupedLists& lists = graph_.groups;
      const ListsOfGroups of_tile(lists, static_cast<std::size_t>(tile.first),
                                  static_cast<std::size_t>(tile.count));
      const auto columns = static_cast<std::size_t>(columns_);
      const std::span<const std::uint32_t> numbers = Consecutive(of_tile.groups + 1);
      thread_local std::vector<float> dots, factors;
      dots.resize(of_tile.groups);
      const torch::Tensor of_sum = AnyTile(columns_);
      float* const of_groups =
          wants_rows_ ? of_groups_.data_ptr<float>() + of_tile.first * columns : nullptr;
      std::vector<std::uint32_t> target(wants_rows_ ? of_tile.groups : 0);
      for (std::size_t t = 0; t + 1 < of_tile.offsets.size() && wants_rows_; ++t)
        std::fill(target.begin() + of_tile.offsets[t], target.begin() + of_tile.offsets[t + 1],
                  static_cast<std::uint32_t>(t));
      for (std::int64_t b = 0; b < bases_; ++b) {
        MultiplyRows(products, tile.count, turned_[static_cast<std::size_t>(b)], {},
                     of_sum.data_ptr<float>());
        Kernels().edge_dot({.x = rows.data(),
                            .x_stride = columns,
                            .dim = columns,
                            .begins = of_tile.offsets.data(),
                            .ends = of_tile.offsets.data() + 1,
                            .index = numbers.data(),
                            .gradient = of_sum.data_ptr<float>(),
                            .out = dots.data()},
                           0, static_cast<std::size_t>(tile.count));
        for (std::size_t g = 0; g < of_tile.groups; ++g)
          coefficients.Add(part, lists.relation[of_tile.first + g], static_cast<std::size_t>(b),
                           dots[g]);
        if (!wants_rows_) continue;
        FillFactors(lists, of_tile.first, of_tile.groups, saved_[3], b, factors);
        // Each group is a list of one edge, its target's gradient.
        SumArgs args;
        args.x = of_sum.data_ptr<float>();
        args.x_stride = columns;
        args.dim = columns;
        args.begins = numbers.data();
        args.ends = numbers.data() + 1;
        args.index = target.data();
        args.edge_weight = factors.data();
        args.keep = b > 0;
        args.out = of_groups;
        args.out_stride = columns;
        Kernels().sum(args, 0, of_tile.groups);
      }
    }

    const variable_list saved_;  // x, self, bases, coefficients, out
    const LayerRows x_;
    const LayerGraph& graph_;
    const Activation activation_;
    const torch::Tensor gradient_;
    const GroupReducer reducer_;
    const std::int64_t columns_;
    const std::int64_t bases_;
    const std::int64_t width_;
    const bool wants_rows_;
    std::vector<PackedWeight> turned_;  // by basis
    PackedWeight turned_self_;
    torch::Tensor own_;        // [targets, columns], gradient of the targets' own rows
    torch::Tensor of_groups_;  // [groups, columns], gradient of the rows of groups
  };
};

}  // namespace

torch::Tensor JoinedWeight(const torch::Tensor& self, const torch::Tensor& bases) {
  const torch::Tensor columns = bases.detach().permute({1, 0, 2}).reshape({self.size(0), -1});
  return at::cat({self.detach(), columns}, 1);
}

void SumByBasis(const float* rows, std::size_t columns, const GroupedLists& groups,
                std::size_t first, std::size_t count, const torch::Tensor& coefficients, float* out,
                std::size_t stride) {
  thread_local std::vector<float> factors;
  const ListsOfGroups lists(groups, first, count);
  const std::span<const std::uint32_t> numbers = Consecutive(lists.groups);
  for (std::int64_t b = 0; b < coefficients.size(1); ++b) {
    FillFactors(groups, lists.first, lists.groups, coefficients, b, factors);
    SumArgs args;
    args.x = rows;
    args.x_stride = columns;
    args.dim = columns;
    args.begins = lists.offsets.data();
    args.ends = lists.offsets.data() + 1;
    args.index = numbers.data();
    args.edge_weight = factors.data();
    args.out = out + static_cast<std::size_t>(b) * columns;
    args.out_stride = stride;
    Kernels().sum(args, 0, count);
  }
}

torch::Tensor BasisForward(const BasisWeights& weights, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation) {
  return BasisFunction::apply(x.table, weights.self, weights.bases, weights.coefficients,
                              weights.bias, &x, &graph, &activation);
}

}  // namespace internal
}  // namespace rhizome
