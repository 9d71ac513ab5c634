#include "gnn/models/conv.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// CommNet: out = x H^T + mean over neighbours of x_j C^T + bias (+ h0 F^T with option skip, where
/// h0 are the first hidden rows). The tanh that follows is the network's activation.
class CommNetConv final : public Conv {
 public:
  CommNetConv(const ConvShape& shape, const ModelOptions& options)
      : Conv(shape.number), shape_(shape), skips_(options.Flag("skip")) {}

  ConvPieces pieces() const override {
    return {
        .reduce = {.by = RHIZOME_MUTANT("commnet adds up") ? Reduction::kSum : Reduction::kMean},
        .width = shape_.in,
        .reads_first = skips_};
  }

  void VisitWeights(const WeightVisitor& visit) override {
    visit({.name = "hidden.weight", .shape = {shape_.out, shape_.in}}, hidden_);
    visit({.name = "communication.weight", .shape = {shape_.out, shape_.in}}, communication_);
    if (skips_) visit({.name = "skip.weight", .shape = {shape_.out, shape_.first}}, skip_);
    visit({.name = "bias", .shape = {shape_.out}, .fill = WeightSpec::Fill::kZeros}, bias_);
  }

  torch::Tensor ReducedWeight() const override { return communication_; }

  torch::Tensor Update(const UpdateRows& rows, const RunMode&) const override {
    const torch::Tensor out =
        Linear(rows.own, hidden_) +
        (rows.multiplied ? rows.reduced : Linear({rows.reduced}, communication_)) + bias_;
    return skips_ ? out + Linear({rows.first}, skip_) : out;
  }

 private:
  const ConvShape shape_;
  const bool skips_;
  torch::Tensor hidden_, communication_, skip_, bias_;
};

}  // namespace

const ConvKind& CommNetKind() {
  static const ConvKind kind{
      .info = {.name = "commnet",
               .title = "the vertex, the mean of its neighbours, and the first hidden row",
               .source = "Sukhbaatar et al., Learning Multiagent Communication with "
                         "Backpropagation (NIPS 2016)",
               .options = {FlagOption("skip", "Feed the first hidden row to every layer")}},
      .defaults = {{"activation", "tanh"}},
      .make = [](const ConvShape& shape,
                 const ModelOptions& options) -> Result<std::shared_ptr<Conv>> {
        return std::make_shared<CommNetConv>(shape, options);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
