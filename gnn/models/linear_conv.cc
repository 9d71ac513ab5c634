#include "gnn/models/linear_conv.h"

#include "gnn/ops/fused_layer.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Gradients that the backward pass of a layer computes.
struct Gradients {
  bool of_weights = false;
  bool of_rows = false;
};

/// Returns whether it is faster to multiply all sources by the weights before aggregation. Products
/// and sums both read rows from memory, where reading a number takes about as long as 32
/// multiplications. The gradient of the weights needs the operands of the product again; sums are
/// kept for it. The gradient of the rows repeats the steps of the output in reverse.
bool TransformsFirst(const LayerGraph& graph, std::int64_t in, std::int64_t out,
                     const Gradients& gradients) {
  constexpr double kReading = 32;
  const auto numbers = static_cast<double>(in);
  const double multiplied = numbers * static_cast<double>(out);
  const auto sources = static_cast<double>(graph.sources());
  const auto targets = static_cast<double>(graph.targets());
  const double edges = kReading * static_cast<double>(graph.lists.csr().neighbors.size());
  const double narrow_sum = edges * static_cast<double>(out);
  const double wide_sum = edges * numbers;
  const double of_sources = sources * (kReading * numbers + multiplied);
  double first = of_sources + narrow_sum;
  double after = wide_sum + targets * multiplied;
  if (gradients.of_weights) {
    first += of_sources + narrow_sum;
    after += targets * (2 * kReading * numbers + multiplied);
  }
  if (gradients.of_rows) {
    first += of_sources;
    after += wide_sum + targets * multiplied;
  }
  return first < after;
}

}  // namespace

ConvPieces LinearConv::pieces() const {
  return {.reduce = reduce_, .width = shape_.in, .update_reads_own = has_own()};
}

void LinearConv::VisitWeights(const WeightVisitor& visit) {
  visit({.name = "neighbor.weight", .shape = {shape_.out, pieces().width}}, neighbor_weight_);
  if (has_own()) visit({.name = "self.weight", .shape = {shape_.out, shape_.in}}, self_weight_);
  visit({.name = "bias", .shape = {shape_.out}, .fill = WeightSpec::Fill::kZeros}, bias_);
}

torch::Tensor LinearConv::Update(const UpdateRows& rows, const RunMode&) const {
  if (rows.both.defined()) return Multiply(rows.both, tile_weight_, bias_);
  const torch::Tensor out =
      (rows.multiplied ? rows.reduced : Linear({rows.reduced}, neighbor_weight_)) + bias_;
  return has_own() ? out + Linear(rows.own, self_weight_) : out;
}

torch::Tensor LinearConv::Forward(const LayerRows& x, const LayerGraph& graph,
                                  const torch::Tensor& first, const Activation& activation,
                                  const RunMode& mode) const {
  if (reduce_.by == Reduction::kMax || pieces().projects)
    return Conv::Forward(x, graph, first, activation, mode);
  const bool learns = at::GradMode::is_enabled();
  if (!TransformsFirst(graph, neighbor_weight_.size(1), neighbor_weight_.size(0),
                       {.of_weights = learns && neighbor_weight_.requires_grad(),
                        .of_rows = learns && x.table.requires_grad()})) {
    return FusedForward({.neighbor = neighbor_weight_, .self = self_weight_, .bias = bias_}, x,
                        graph, activation);
  }
  const torch::Tensor sums =
      AggregateSum(Linear(x, neighbor_weight_), graph.lists, graph.factors()) + bias_;
  if (!has_own()) return Activate(sums, activation);
  return Activate(sums + Linear(x.First(graph.targets()), self_weight_), activation);
}

std::uint64_t LinearConv::TargetNumbers() const {
  // The multiplied rows, the products, and the gradients of both.
  return static_cast<std::uint64_t>(2 * shape_.in + 3 * shape_.out);
}

void LinearConv::Freeze() {
  tile_weight_ = PackedWeight(has_own() ? at::cat({self_weight_, neighbor_weight_}, 1).detach()
                                        : neighbor_weight_.detach());
}

}  // namespace internal
}  // namespace rhizome
