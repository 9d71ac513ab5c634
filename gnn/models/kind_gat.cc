#include <fmt/format.h>

#include "gnn/models/conv.h"
#include "gnn/ops/head_dots.h"
#include "gnn/ops/projected_attention.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Attention with `heads` heads of c columns. With z = x W^T, an edge from j to i has the score
///   GAT:    LeakyReLU(a_source . z_j + a_target . z_i)
///   GATv2:  a . LeakyReLU(z_j + x_i W_target^T + b_target)
/// and out_i = bias + sum of softmax(score) z_j for each head. The heads' sums are concatenated, or
/// averaged in the last layer of a network without a head. Each vertex is one of its own
/// neighbours, unless option no-self-loops is set.
class GatConv final : public Conv {
 public:
  GatConv(const ConvShape& shape, const ModelOptions& options, AttendScore score)
      : Conv(shape.number),
        shape_(shape),
        heads_(options.Integer(shape.is_output ? "out-heads" : "heads")),
        head_width_(shape.is_output ? shape.out : shape.out / heads_),
        reduce_{.by = Reduction::kAttention,
                .own_joins = !options.Flag("no-self-loops"),
                .attention = {.score = score,
                              .heads = heads_,
                              .slope = static_cast<float>(options.Number("negative-slope")),
                              .dropout = options.Number("attention-dropout")}} {}

  ConvPieces pieces() const override {
    return {.reduce = reduce_,
            .projects = true,
            .width = heads_ * head_width_,
            .update_reads_own = false};
  }

  void VisitWeights(const WeightVisitor& visit) override {
    const std::int64_t width = heads_ * head_width_;
    const std::vector<std::int64_t> vectors = {heads_, head_width_};
    using Fill = WeightSpec::Fill;
    visit({.name = "source.weight", .shape = {width, shape_.in}}, weight_);
    if (second()) {
      visit({.name = "source.bias", .shape = {width}, .fill = Fill::kZeros}, source_bias_);
      visit({.name = "target.weight", .shape = {width, shape_.in}}, target_weight_);
      visit({.name = "target.bias", .shape = {width}, .fill = Fill::kZeros}, target_bias_);
      visit({.name = "attention", .shape = vectors}, vectors_);
    } else {
      visit({.name = "attention.source", .shape = vectors}, source_vectors_);
      visit({.name = "attention.target", .shape = vectors}, vectors_);
    }
    visit({.name = "bias", .shape = {shape_.out}, .fill = Fill::kZeros}, bias_);
  }

  torch::Tensor Project(const LayerRows& rows, const RunMode&) const override {
    const torch::Tensor projected = Linear(rows, weight_);
    return second() ? projected + source_bias_ : projected;
  }

  torch::Tensor SourceScores(const torch::Tensor& projected) const override {
    return HeadDots(projected, source_vectors_);
  }

  torch::Tensor Query(const LayerRows& own, const torch::Tensor& projected) const override {
    if (second()) return Linear(own, target_weight_) + target_bias_;
    return HeadDots(projected, vectors_);
  }

  torch::Tensor ScoreVectors() const override { return vectors_; }

  torch::Tensor Attended(const LayerRows& x, const LayerGraph& graph,
                         const RunMode& mode) const override {
    // On a device, use separate operations: it has enough memory for their intermediate results.
    if (graph.lists.uploads() != nullptr) return Conv::Attended(x, graph, mode);
    const AttentionShape shape = ShapeOfAttention(mode);
    if (!second())
      return AttendProjected(x, weight_, source_vectors_, vectors_, graph.lists, shape);
    return AttendProjectedGatv2(x, weight_, source_bias_, Query(x.First(graph.targets()), {}),
                                vectors_, graph.lists, shape);
  }

  /// Counts the projected row and its scores.
  std::uint64_t SourceNumbers() const override {
    return static_cast<std::uint64_t>(heads_ * (head_width_ + 2));
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode&) const override {
    if (!shape_.is_output) return rows.reduced + bias_;
    const torch::Tensor heads = rows.reduced.reshape({-1, heads_, head_width_});
    return (RHIZOME_MUTANT("heads are added up") ? heads.sum(1) : heads.mean(1)) + bias_;
  }

 private:
  bool second() const { return reduce_.attention.score == AttendScore::kGatv2; }

  const ConvShape shape_;
  const std::int64_t heads_;
  const std::int64_t head_width_;
  const ReducePiece reduce_;
  torch::Tensor weight_, source_bias_, target_weight_, target_bias_;
  torch::Tensor source_vectors_, vectors_;  // [heads, columns of a head]
  torch::Tensor bias_;
};

template <AttendScore score>
Result<std::shared_ptr<Conv>> Make(const ConvShape& shape, const ModelOptions& options) {
  const std::int64_t heads = options.Integer("heads");
  if (!shape.is_output && shape.out % heads != 0) {
    return Fail(
        Status::InvalidArgument(fmt::format("{} hidden columns cannot be divided among {} heads; "
                                            "choose a multiple of the heads for `hidden`",
                                            shape.out, heads)));
  }
  return std::make_shared<GatConv>(shape, options, score);
}

std::vector<ModelOption> Options() {
  return {IntegerOption("heads", 4, 1, kMaxHeads, "Heads, which share the hidden columns"),
          IntegerOption("out-heads", 1, 1, kMaxHeads,
                        "Heads of the last layer if it computes scores, which are averaged"),
          NumberOption("attention-dropout", "0", 0, 0.99,
                       "Share of attention weights dropped in training"),
          NumberOption("negative-slope", "0.2", 0, 1, "Slope of LeakyReLU below zero"),
          FlagOption("no-self-loops", "Exclude the vertex from its own neighbours")};
}

}  // namespace

const ConvKind& GatKind() {
  static const ConvKind kind{
      .info = {.name = "gat",
               .title = "attention by the sum of one score per end of an edge",
               .source = "Velickovic et al., Graph Attention Networks (ICLR 2018)",
               .options = Options()},
      .defaults = {{"activation", "elu"}},
      .make = Make<AttendScore::kAdditive>};
  return kind;
}

const ConvKind& GatV2Kind() {
  static const ConvKind kind{
      .info = {.name = "gatv2",
               .title = "attention by a joint score of both ends of an edge",
               .source = "Brody et al., How Attentive are Graph Attention Networks? (ICLR 2022)",
               .options = Options()},
      .defaults = {{"activation", "elu"}},
      .make = Make<AttendScore::kGatv2>};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
