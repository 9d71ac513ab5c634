#include "gnn/models/weights.h"

namespace rhizome {
inline namespace internal {
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
    visit({.name = "eps", .shape = {1}, .fill = WeightSpec::Fill::kZeros, .trained = learns_},
          eps_);
    first_.Visit("mlp.0", shape_.in, shape_.out, visit);
    norm_.Visit(Normalization::kBatch, "mlp.norm", shape_.out, visit);
    second_.Visit("mlp.1", shape_.out, shape_.out, visit);
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const override {
    const torch::Tensor sum = rows.own.Floats() * (1 + start_ + eps_) + rows.reduced;
    return second_.Of({at::relu(norm_.Of(first_.Of({sum}), mode))});
  }

 private:
  const ConvShape shape_;
  const bool learns_;
  const double start_;
  torch::Tensor eps_;  // [1], added to `start_`
  DenseWeights first_, second_;
  NormWeights norm_;
};

}  // namespace

const ConvKind& GinKind() {
  static const ConvKind kind{
      .info = {.name = "gin",
               .title = "an MLP of the sum over neighbours and the vertex itself",
               .source = "Xu et al., How Powerful are Graph Neural Networks? (ICLR 2019)",
               .options = {NumberOption("eps", "0", -1, 10,
                                        "Weight of the vertex's own row, minus 1"),
                           FlagOption("fixed-eps", "Do not train that weight")}},
      .make = [](const ConvShape& shape, const ModelOptions& options)
          -> Result<std::shared_ptr<Conv>> { return std::make_shared<GinConv>(shape, options); }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
