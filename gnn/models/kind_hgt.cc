#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gnn/models/conv.h"
#include "gnn/ops/block_products.h"
#include "gnn/ops/typed_attention.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// HGT. Keys, values and queries are products with the matrices of a row's vertex type. With d
/// columns per head, an edge with relation r from j to i has, for each head, the score
///
///   prior_r (K_j A_r) . Q_i / sqrt(d) = K_j . q,  q = prior_r A_r Q_i / sqrt(d),
///
/// and the message V_j M_r. The softmax is over all edges of the target. In training (AttendByType)
/// scores are dot products with one vector q for each group of edges (a target and a relation), and
/// M_r is applied to the weighted sum of a group. Layerwise inference keeps one query and one sum
/// for each target instead of each group: it multiplies keys by A_r and values by M_r, once for
/// each pair of a source and a relation (RelatedRows). Then out_i = gelu(sum) W + b with W and b of
/// the target's type; if the widths agree, out_i and the target's own row are mixed by the gate
/// sigmoid(skip).
class HgtConv final : public Conv {
 public:
  HgtConv(const ConvShape& shape, std::int64_t heads)
      : Conv(shape.number), shape_(shape), heads_(heads), width_(shape.out / heads) {}

  ConvPieces pieces() const override {
    return {.reduce = {.by = Reduction::kAttention,
                       .attention = {.score = AttendScore::kDot, .heads = heads_}},
            .projects = true,
            .width = shape_.out,
            .update_reads_own = gated(),
            .groups = true,
            .relates = true,
            .by_vertex_type = true};
  }

  void VisitWeights(const WeightVisitor& visit) override {
    using Fill = WeightSpec::Fill;
    const std::int64_t types = shape_.vertex_types, in = shape_.in, out = shape_.out;
    const std::vector<std::int64_t> matrices = {shape_.relations, heads_, width_, width_};
    visit({.name = "key_value.weight", .shape = {types, 2 * out, in}}, key_value_weight_);
    visit({.name = "key_value.bias", .shape = {types, 2 * out}, .fill = Fill::kZeros},
          key_value_bias_);
    visit({.name = "query.weight", .shape = {types, out, in}}, query_weight_);
    visit({.name = "query.bias", .shape = {types, out}, .fill = Fill::kZeros}, query_bias_);
    visit({.name = "relation.attention", .shape = matrices}, attention_);
    visit({.name = "relation.message", .shape = matrices}, message_);
    visit({.name = "relation.prior", .shape = {shape_.relations, heads_}, .fill = Fill::kOnes},
          prior_);
    visit({.name = "output.weight", .shape = {types, out, out}}, output_weight_);
    visit({.name = "output.bias", .shape = {types, out}, .fill = Fill::kZeros}, output_bias_);
    if (gated()) visit({.name = "skip", .shape = {types}, .fill = Fill::kOnes}, skip_);
  }

  torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph, const torch::Tensor&,
                        const Activation& activation, const RunMode&) const override {
    const TypedGraph& typed = *graph.typed;
    // Rows are read several times, so rows of half precision are converted once.
    const LayerRows rows = x.table.scalar_type() == torch::kFloat32 ? x : LayerRows{x.Floats()};
    const LayerRows own = rows.First(graph.targets());
    const torch::Tensor query =
        ClassProducts(own, typed.targets, query_weight_.unsqueeze(1), query_bias_);
    const torch::Tensor sums = AttendByType(rows, query,
                                            {.key_value = key_value_weight_,
                                             .key_value_bias = key_value_bias_,
                                             .attention = ScaledAttention(),
                                             .message = message_},
                                            typed);
    return Activate(Output(sums, own, typed), activation);
  }

  torch::Tensor Project(const LayerRows& rows, const RunMode&) const override {
    return ByType(rows, key_values_);
  }

  torch::Tensor Query(const LayerRows& own, const torch::Tensor&) const override {
    return ByType(own, queries_);
  }

  void Relate(const LayerRows& projected, const RowsByClass& pairs,
              std::span<const std::uint32_t> row, float* out) const override {
    MultiplySorted(projected, pairs, relations_, out, {.row = row});
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode&) const override {
    const torch::Tensor out = ByType({at::gelu(rows.reduced), {}, rows.own.types}, outputs_);
    if (!gated()) return out;
    return at::lerp(rows.own.Floats(), out, GatesOf(rows.own.types));
  }

  void Freeze() override {
    key_values_ = PackedClasses(key_value_weight_.unsqueeze(1), key_value_bias_);
    queries_ = PackedClasses(query_weight_.unsqueeze(1), query_bias_);
    relations_ = PackedClasses(at::cat({ScaledAttention().transpose(2, 3), message_}, 1));
    outputs_ = PackedClasses(output_weight_.unsqueeze(1), output_bias_);
  }

  /// Counts the query, the sum over groups, the steps of the output, and their gradients.
  std::uint64_t TargetNumbers() const override {
    return static_cast<std::uint64_t>(10 * shape_.out);
  }

  /// Counts the query and the weighted sum, which their gradients replace.
  std::uint64_t GroupNumbers() const override {
    return static_cast<std::uint64_t>(2 * ColumnsTogether(heads_, width_));
  }

  /// Counts the keys and values.
  std::uint64_t SourceNumbers() const override {
    return static_cast<std::uint64_t>(2 * ColumnsTogether(heads_, width_));
  }

 private:
  bool gated() const { return shape_.in == shape_.out; }

  /// Returns the matrices of the groups' queries, prior_r A_r / sqrt(d).
  torch::Tensor ScaledAttention() const {
    const double scale = 1 / std::sqrt(static_cast<double>(width_));
    return attention_ * (prior_ * scale).view({shape_.relations, heads_, 1, 1});
  }

  torch::Tensor Output(const torch::Tensor& sums, const LayerRows& own,
                       const TypedGraph& typed) const {
    const torch::Tensor out =
        ClassProducts({at::gelu(sums)}, typed.targets, output_weight_.unsqueeze(1), output_bias_);
    if (!gated()) return out;
    std::vector<TypeId> types(static_cast<std::size_t>(typed.targets.size()));
    for (std::size_t c = 0; c + 1 < typed.targets.begin.size(); ++c) {
      for (std::uint32_t i = typed.targets.begin[c]; i < typed.targets.begin[c + 1]; ++i)
        types[typed.targets.rows[i]] = static_cast<TypeId>(c);
    }
    return at::lerp(own.Floats(), out, GatesOf(types));
  }

  /// Returns the gate of each target, [targets, 1].
  torch::Tensor GatesOf(std::span<const TypeId> types) const {
    std::vector<std::int64_t> numbers(types.begin(), types.end());
    if (RHIZOME_MUTANT("hgt has one gate")) std::fill(numbers.begin(), numbers.end(), 0);
    return at::sigmoid(skip_).index_select(0, torch::tensor(numbers, torch::kInt64)).unsqueeze(1);
  }

  /// Multiplies each row by the matrix of its vertex type. For layerwise inference: on the calling
  /// thread, without gradients.
  torch::Tensor ByType(const LayerRows& rows, const PackedClasses& weight) const {
    torch::Tensor out = at::empty({rows.size(), weight.out()});
    MultiplyByClass({rows.Floats().contiguous()},
                    RowsByClass::Of(rows.types, static_cast<std::size_t>(shape_.vertex_types)),
                    weight, out.data_ptr<float>());
    return out;
  }

  const ConvShape shape_;
  const std::int64_t heads_;
  const std::int64_t width_;  // columns per head
  torch::Tensor key_value_weight_, key_value_bias_;
  torch::Tensor query_weight_, query_bias_;
  torch::Tensor attention_;  // [relations, heads, width, width]; rows are columns of keys
  torch::Tensor message_;    // [relations, heads, width, width]; columns are columns of values
  torch::Tensor prior_;
  torch::Tensor output_weight_, output_bias_;
  torch::Tensor skip_;  // undefined unless gated()
  // Set by Freeze. relations_: of the keys, then of the values of each head.
  PackedClasses key_values_, queries_, relations_, outputs_;
};

Result<std::shared_ptr<Conv>> MakeHgt(const ConvShape& shape, const ModelOptions& options) {
  const std::int64_t heads = options.Integer("heads");
  if (shape.out % heads != 0) {
    return Fail(Status::InvalidArgument(
        fmt::format("layer {} of model hgt has {} columns, which {} heads do not divide; choose "
                    "`hidden` as a multiple of option heads{}",
                    shape.number + 1, shape.out, heads,
                    shape.is_output ? ", or set option head to linear or mlp" : "")));
  }
  return std::make_shared<HgtConv>(shape, heads);
}

}  // namespace

const ConvKind& HgtKind() {
  static const ConvKind kind{
      .info = {.name = "hgt",
               .title = "attention with matrices for each vertex type and edge type",
               .source = "Hu et al., Heterogeneous Graph Transformer (WWW 2020)",
               .options = {IntegerOption("heads", 4, 1, static_cast<std::int64_t>(kMaxHeads),
                                         "Heads, which share the hidden columns")},
               .typed = true},
      .defaults = {{"activation", "none"}},
      .make = MakeHgt};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
