#include "rhizome/gnn/conv.h"

namespace rhizome::inline internal {
namespace {

/// GIN: out = MLP((1 + eps) x + sum over neighbours of x_j); the MLP has one hidden layer, with
/// batch norm inside.
class GinConv final : public Conv {
 public:
  GinConv(const ConvShape& shape, const ModelOptions& options)
      : Conv(shape.number),
        shape_(shape),
        learns_(!options.Flag("fixed-eps")),
        start_(options.Number("eps")) {}

  ConvPieces pieces() const override {
    return {.reduce = {.by = Reduction::kSum}, .width = shape_.in};
  }

  void VisitWeights(const WeightVisitor& visit) override {
    using Fill = WeightSpec::Fill;
    visit({.name = "eps", .shape = {1}, .fill = Fill::kZeros, .trained = learns_}, eps_);
    visit({.name = "mlp.0.weight", .shape = {shape_.out, shape_.in}}, weight_[0]);
    visit({.name = "mlp.0.bias", .shape = {shape_.out}, .fill = Fill::kZeros}, bias_[0]);
    visit({.name = "mlp.norm.weight", .shape = {shape_.out}, .fill = Fill::kOnes}, scale_);
    visit({.name = "mlp.norm.bias", .shape = {shape_.out}, .fill = Fill::kZeros}, shift_);
    visit({.name = "mlp.norm.mean", .shape = {shape_.out}, .fill = Fill::kZeros, .trained = false},
          mean_);
    visit(
        {.name = "mlp.norm.variance", .shape = {shape_.out}, .fill = Fill::kOnes, .trained = false},
        variance_);
    visit({.name = "mlp.1.weight", .shape = {shape_.out, shape_.out}}, weight_[1]);
    visit({.name = "mlp.1.bias", .shape = {shape_.out}, .fill = Fill::kZeros}, bias_[1]);
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const override {
    const torch::Tensor sum = rows.own.Floats() * (1 + start_ + eps_) + rows.reduced;
    const torch::Tensor hidden = Linear({sum}, weight_[0]) + bias_[0];
    const torch::Tensor normed =
        at::batch_norm(hidden, scale_, shift_, mean_, variance_, mode.training(), 0.1, 1e-5, false);
    return Linear({at::relu(normed)}, weight_[1]) + bias_[1];
  }

 private:
  const ConvShape shape_;
  const bool learns_;
  const double start_;
  torch::Tensor eps_;  // [1], beside `start_`
  torch::Tensor weight_[2], bias_[2];
  torch::Tensor scale_, shift_, mean_, variance_;  // of the batch norm
};

}  // namespace

const ConvKind& GinKind() {
  static const ConvKind kind{
      .info = {.name = "gin",
               .title = "an MLP of the sum over neighbours and the vertex itself",
               .source = "Xu et al., How Powerful are Graph Neural Networks? (ICLR 2019)",
               .options = {NumberOption("eps", "0", -1, 10, "Weight of the own row, less 1"),
                           FlagOption("fixed-eps", "Keep that weight as it is")}},
      .make = [](const ConvShape& shape, const ModelOptions& options)
          -> Result<std::shared_ptr<Conv>> { return std::make_shared<GinConv>(shape, options); }};
  return kind;
}

}  // namespace rhizome::inline internal
