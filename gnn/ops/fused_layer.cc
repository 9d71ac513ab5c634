#include "gnn/ops/fused_layer.h"

#include <algorithm>
#include <optional>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/dense.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Parameters of a fused layer other than its tensors.
struct FusedShape {
  const LayerGraph* graph;
  Activation activation;

  std::int64_t targets() const { return graph->targets(); }
};

/// The rows of a layer's sources, of any type, in the form that the kernels read. If own rows are
/// included in the sum, also the rows of its targets, as floats.
class FusedInputs {
 public:
  FusedInputs(const LayerRows& x, const LayerGraph& graph, bool has_self)
      : x_(x), graph_(graph), rows_(RowsOf(x.table)) {
    if (!has_self) own_ = OwnRows();
    if (!x.place.empty()) FindPlaces();
  }

  const RowsView& rows() const { return rows_; }
  const LayerRows& source_rows() const { return x_; }
  const float* own() const { return own_.data_ptr<float>(); }

  /// Returns lists whose neighbours are row numbers of the table.
  CsrView lists() const {
    CsrView csr = graph_.lists.csr();
    if (!neighbors_.empty()) csr.neighbors = neighbors_;
    return csr;
  }

  AggregateScales scales() const {
    // If `place` is set, factors are given per edge instead of per source; the products are the
    // same.
    const bool by_edge = !edge_scale_.empty();
    return {.target = graph_.target_scale,
            .source = by_edge ? std::span<const float>() : graph_.source_scale,
            .edge = by_edge ? std::span<const float>(edge_scale_) : graph_.lists.weights()};
  }

 private:
  /// Returns the rows of the targets as floats; copies only if `place` is set or the type differs.
  torch::Tensor OwnRows() const {
    if (x_.place.empty()) return x_.table.narrow(0, 0, graph_.targets()).to(torch::kFloat32);
    torch::Tensor own = at::empty({graph_.targets(), static_cast<std::int64_t>(rows_.dim)});
    x_.Copy(0, graph_.targets(), own.data_ptr<float>(), rows_.dim);
    return own;
  }

  void FindPlaces() {
    const std::span<const std::uint32_t> neighbors = graph_.lists.csr().neighbors;
    neighbors_.resize(neighbors.size());
    const std::span<const float> weights = graph_.lists.weights();
    if (!graph_.source_scale.empty()) edge_scale_.resize(neighbors.size());
    constexpr std::size_t kPiece = 1 << 15;
    ComputeFor((neighbors.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
      const std::size_t end = std::min(neighbors.size(), (piece + 1) * kPiece);
      for (std::size_t e = piece * kPiece; e < end; ++e) {
        neighbors_[e] = x_.place[neighbors[e]];
        if (edge_scale_.empty()) continue;
        edge_scale_[e] = graph_.source_scale[neighbors[e]] * (weights.empty() ? 1 : weights[e]);
      }
    });
  }

  const LayerRows& x_;
  const LayerGraph& graph_;
  const RowsView rows_;
  torch::Tensor own_;                     // [targets, in]; if included in the sum
  std::vector<std::uint32_t> neighbors_;  // empty: the neighbours of the graph
  std::vector<float> edge_scale_;         // empty: the factors of the sources
};

/// Fills a tile with the inputs of the product: [self | sum] if own rows have a separate weight,
/// else the sum of own and neighbours' rows.
void FillTile(const FusedShape& shape, const FusedInputs& x, const DenseTile& tile, bool has_self,
              float* out) {
  const std::size_t in = x.rows().dim;
  const std::size_t width = has_self ? 2 * in : in;
  const auto first = static_cast<std::size_t>(tile.first);
  const auto count = static_cast<std::size_t>(tile.count);
  AggregateStart start;
  if (!has_self) {
    start = {.rows = x.own(),
             .stride = in,
             .count = shape.graph->self_scale.size(),
             .scale = shape.graph->self_scale};
  }
  // The kernel counts targets from 0, so the arrays are advanced to the tile's first target.
  SumArgs args = MakeSumArgs(x.lists(), x.scales(), x.rows(), start, nullptr, width);
  args.begins += first;
  args.ends += first;
  args.target_scale += first;
  if (!has_self) {
    args.initial += first * in;
    args.initial_scale += first;
    args.initial_rows -= first;
  }
  args.out = out + (has_self ? in : 0);
  Kernels().sum(args, 0, count);
  if (has_self) x.source_rows().Copy(tile.first, tile.count, out, width);
}

torch::Tensor BothWeights(const torch::Tensor& neighbor, const std::optional<torch::Tensor>& self) {
  return self ? at::cat({*self, neighbor}, 1) : neighbor.contiguous();
}

/// The layer as an autograd function.
/// 1. forward: for each tile, aggregates its inputs (FillTile), multiplies by the weights and
///    activates.
/// 2. backward: for each tile, computes the gradient of the product from the gradient of the output
///    (BeforeActivation), adds it to the weight gradient, and multiplies it by the transposed
///    weights. Then aggregates the gradient of each source over the transposed lists (OfSources).
struct FusedFunction : torch::autograd::Function<FusedFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& neighbor_weight,
                               const std::optional<torch::Tensor>& self_weight,
                               const torch::Tensor& bias, const LayerRows* x,
                               const FusedShape* shape, bool needs_gradient) {
    const bool has_self = self_weight.has_value();
    const LayerRows rows{table.contiguous(), x->place};
    const FusedInputs sources(rows, *shape->graph, has_self);
    const torch::Tensor weight = BothWeights(neighbor_weight, self_weight);
    const PackedWeight packed(weight);
    const std::int64_t targets = shape->targets();
    const std::int64_t tiles = DenseTiles(targets);
    torch::Tensor out = at::empty({targets, bias.size(0)});
    // Kept for the gradient of the weights; without a gradient each task uses a temporary tile.
    torch::Tensor inputs;
    if (needs_gradient) inputs = at::empty({tiles * kDenseRows, weight.size(1)});
    ComputeFor(static_cast<std::size_t>(tiles), [&](std::size_t i) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const auto number = static_cast<std::int64_t>(i);
      const DenseTile tile = DenseTileAt(number, targets);
      const torch::Tensor input = needs_gradient ? inputs.narrow(0, number * kDenseRows, kDenseRows)
                                                 : AnyTile(weight.size(1));
      FillTile(*shape, sources, tile, has_self, input.data_ptr<float>());
      const torch::Tensor product = Multiply(input.narrow(0, 0, tile.count), packed, bias);
      ActivateRows(shape->activation, product.data_ptr<float>(), tile.count, out.size(1),
                   tile.first, out.data_ptr<float>() + tile.first * out.size(1));
    });
    if (needs_gradient) Keep(context, inputs, weight, out, has_self, *shape);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor& inputs = saved[0];
    const torch::Tensor& result = saved[2];
    const FusedShape shape = Kept(context);
    const bool has_self = context->saved_data["has_self"].toBool();
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor input_gradient;
    PackedWeight turned;
    if (context->needs_input_grad(0)) {
      turned = PackedWeight(saved[1].t());
      input_gradient = at::empty({shape.targets(), inputs.size(1)});
    }
    WeightGradient sums(shape.targets(), gradient.size(1), inputs.size(1));
    ComputeFor(sums.groups(), [&](std::size_t group) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const LayerRows before{AnyTile(gradient.size(1))};
      const std::int64_t end = sums.FirstTile(group + 1);
      for (std::int64_t number = sums.FirstTile(group); number < end; ++number) {
        const DenseTile tile = DenseTileAt(number, shape.targets());
        float* const of_products = before.table.data_ptr<float>();
        BeforeActivation(shape.activation, result, gradient, tile, of_products);
        sums.Add(group, of_products, ProductTile({inputs}, number).rows(), tile.count);
        if (!input_gradient.defined()) continue;
        MultiplyRows(ProductTile(before, 0).rows(), tile.count, turned, {},
                     input_gradient.data_ptr<float>() + tile.first * input_gradient.size(1));
      }
    });
    const torch::Tensor weight = sums.Weight();
    const std::int64_t in = has_self ? inputs.size(1) / 2 : inputs.size(1);
    variable_list out = {{}, has_self ? weight.narrow(1, in, in) : weight, {}, sums.Bias(), {}, {},
                         {}};
    if (has_self) out[2] = weight.narrow(1, 0, in);
    if (input_gradient.defined()) out[0] = OfSources(shape, input_gradient, in);
    return out;
  }

 private:
  static void Keep(AutogradContext* context, const torch::Tensor& inputs,
                   const torch::Tensor& weight, const torch::Tensor& out, bool has_self,
                   const FusedShape& shape) {
    context->save_for_backward({inputs, weight, out});
    context->saved_data["has_self"] = has_self;
    context->saved_data["graph"] = reinterpret_cast<std::int64_t>(shape.graph);
    context->saved_data["relu"] = shape.activation.relu;
    context->saved_data["dropout"] = shape.activation.dropout;
    context->saved_data["seed"] = static_cast<std::int64_t>(shape.activation.seed);
  }

  static FusedShape Kept(AutogradContext* context) {
    const auto& data = context->saved_data;
    return {.graph = reinterpret_cast<const LayerGraph*>(data.at("graph").toInt()),
            .activation = {.relu = data.at("relu").toBool(),
                           .dropout = data.at("dropout").toDouble(),
                           .seed = static_cast<std::uint64_t>(data.at("seed").toInt())}};
  }

  /// Computes the gradient of one tile's products, before the activation.
  static void BeforeActivation(const Activation& activation, const torch::Tensor& result,
                               const torch::Tensor& gradient, const DenseTile& tile, float* out) {
    const std::int64_t dim = gradient.size(1);
    ActivateGradientRows(activation, result.data_ptr<float>() + tile.first * dim,
                         gradient.data_ptr<float>() + tile.first * dim, tile.count, dim, tile.first,
                         out);
  }

  /// Returns the gradient of each source: its own part, if it is a target, plus the part through
  /// its edges.
  static torch::Tensor OfSources(const FusedShape& shape, const torch::Tensor& input_gradient,
                                 std::int64_t in) {
    const LayerGraph& graph = *shape.graph;
    const CsrView turned = graph.lists.turned().lists.view();
    const float* const gradient = input_gradient.data_ptr<float>();
    const auto stride = static_cast<std::size_t>(input_gradient.size(1));
    const RowsView sums{.type = RowType::kFloat32,
                        .x = gradient + (static_cast<std::int64_t>(stride) - in),
                        .dim = static_cast<std::size_t>(in),
                        .stride = stride};
    const AggregateStart own{.rows = gradient,
                             .stride = stride,
                             .count = static_cast<std::size_t>(shape.targets()),
                             .scale = graph.self_scale};
    torch::Tensor out = at::empty({graph.sources(), in});
    SumOnThreads(MakeSumArgs(turned,
                             {.target = graph.source_scale,
                              .source = graph.target_scale,
                              .edge = graph.lists.turned_weights()},
                             sums, own, out.data_ptr<float>(), static_cast<std::size_t>(in)),
                 turned);
    return out;
  }
};

torch::Tensor FusedOnDevice(const FusedWeights& weights, const LayerRows& x,
                            const LayerGraph& graph, const Activation& activation) {
  torch::Tensor input = AggregateSum(x.table, graph.lists, graph.factors());
  torch::Tensor weight = weights.neighbor;
  if (weights.self.defined()) {
    input = at::cat({x.First(graph.targets()).Floats(), input}, 1);
    weight = at::cat({weights.self, weight}, 1);
  }
  if (input.is_cpu()) return Activate(Linear({input}, weight) + weights.bias, activation);
  return Activate(at::addmm(weights.bias, input, weight.t()), activation);
}

}  // namespace

torch::Tensor FusedForward(const FusedWeights& weights, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation) {
  if (graph.lists.uploads() != nullptr) return FusedOnDevice(weights, x, graph, activation);
  const FusedShape shape{&graph, activation};
  const bool needs_gradient =
      at::GradMode::is_enabled() && (x.table.requires_grad() || weights.neighbor.requires_grad());
  const auto self_weight = weights.self.defined() ? std::optional(weights.self) : std::nullopt;
  return FusedFunction::apply(x.table, weights.neighbor, self_weight, weights.bias, &x, &shape,
                              needs_gradient);
}

}  // namespace internal
}  // namespace rhizome
