#include "gnn/models/linear_conv.h"
#include "gnn/models/weights.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// SAGE: out = x W_self^T + reduced W_neighbor^T + bias, scaled to length 1 with option
/// l2-normalize. Aggregator gcn takes the mean over the neighbours and the vertex itself, and has
/// no W_self; pool takes the maximum of relu(x_j W_pool^T + b_pool).
class SageConv final : public LinearConv {
 public:
  SageConv(const ConvShape& shape, const ModelOptions& options)
      : LinearConv(shape, ReduceOf(options.Choice("aggregator")),
                   options.Choice("aggregator") == "gcn" ? OwnWeight::kNo : OwnWeight::kYes),
        pools_(options.Choice("aggregator") == "pool"),
        normalizes_(options.Flag("l2-normalize")) {}

  ConvPieces pieces() const override {
    ConvPieces pieces = LinearConv::pieces();
    pieces.projects = pools_;
    return pieces;
  }

  void VisitWeights(const WeightVisitor& visit) override {
    if (pools_) pool_.Visit("pool", shape().in, shape().in, visit);
    LinearConv::VisitWeights(visit);
  }

  torch::Tensor Project(const LayerRows& rows, const RunMode&) const override {
    return at::relu(pool_.Of(rows));
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const override {
    return Normalized(LinearConv::Update(rows, mode));
  }

  torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph, const torch::Tensor& first,
                        const Activation& activation, const RunMode& mode) const override {
    if (!normalizes_) return LinearConv::Forward(x, graph, first, activation, mode);
    if (pieces().reduce.by == Reduction::kMax)
      return Conv::Forward(x, graph, first, activation, mode);
    return Activate(Normalized(LinearConv::Forward(x, graph, first, {}, mode)), activation);
  }

 private:
  static ReducePiece ReduceOf(const std::string& aggregator) {
    if (aggregator == "max" || aggregator == "pool") return {.by = Reduction::kMax};
    return {.by = Reduction::kMean, .own_joins = aggregator == "gcn"};
  }

  /// Divides each row by its length. Source: Hamilton et al., algorithm 1, line 7.
  torch::Tensor Normalized(const torch::Tensor& x) const {
    if (!normalizes_) return x;
    return x /
           at::clamp_min(
               at::norm(x, RHIZOME_MUTANT("rows are divided by the sum of their numbers") ? 1 : 2,
                        {1}, true),
               1e-12);
  }

  const bool pools_;
  const bool normalizes_;
  DenseWeights pool_;
};

}  // namespace

const ConvKind& SageKind() {
  static const ConvKind kind{
      .info = {.name = "sage",
               .title = "the vertex, and the mean or maximum of its neighbours",
               .source = "Hamilton et al., Inductive Representation Learning on Large Graphs "
                         "(NIPS 2017)",
               .options = {ChoiceOption("aggregator", {"mean", "gcn", "max", "pool"},
                                        "Aggregation of neighbours"),
                           FlagOption("l2-normalize", "Scale each output row to length 1")}},
      .make = [](const ConvShape& shape, const ModelOptions& options)
          -> Result<std::shared_ptr<Conv>> { return std::make_shared<SageConv>(shape, options); }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
