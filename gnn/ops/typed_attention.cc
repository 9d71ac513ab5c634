#include "gnn/ops/typed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "cache/job/compute_threads.h"
#include "gnn/ops/attention_passes.h"
#include "gnn/ops/class_tiles.h"
#include "storage/base/mutant.h"

// Attention over groups of edges, each with the matrices of its relation. Both passes compute the
// heads in ranges one after another, because the rows of sources and groups need most of the memory
// (HeadPass):
// 1. The forward pass computes keys and values of sources, and the query of each group; attends for
//    each group (AttendForward); turns the groups' softmaxes into one over the edges of each target
//    (JoinGroups); and adds the products with the message matrices to the targets.
// 2. The backward pass repeats this, except for the last step. It replaces the rows of groups by
//    their gradients, which are products of the targets' gradients, computes the gradients of keys
//    and values tile by tile, and replaces the queries of groups by their gradients.

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Computes the row of each group from the row of its target: out[g] = weight[r] rows[t], or with
/// the transposed weight.
void ToGroups(const torch::Tensor& rows, const torch::Tensor& weight, bool turned,
              const TypedGraph& graph, const torch::Tensor& out) {
  MultiplyClasses(SourceRows({rows}, graph.groups, graph.of_targets), graph.groups,
                  PackedClasses(weight, graph.groups, turned), out.data_ptr<float>(),
                  RunOn::kComputeThreads);
}

/// Adds to the row of each target the products of its groups' rows, in order of their relations.
void FromGroups(const torch::Tensor& rows, const torch::Tensor& weight, bool turned,
                const TypedGraph& graph, const torch::Tensor& out) {
  AddToTargets(SourceRows({rows}, graph.groups, kSameRows), graph.groups, weight, turned,
               graph.target_of_group, out);
}

/// Returns the gradient of the matrices of relations, of products from `x` with gradients
/// `gradient`.
torch::Tensor OfRelations(const RowsByClass& groups, const SourceRows& x,
                          const SourceRows& gradient, at::IntArrayRef shape) {
  const torch::Tensor out = at::zeros(shape);
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape[0]); ++c)
    AddClassGradient(groups, c, x, gradient, out, {});
  return out;
}

/// A head of the groups of a target.
struct HeadOfGroups {
  std::size_t begin, end;  ///< groups
  std::size_t heads, head;
  std::size_t width;
};

/// Turns the softmaxes of a target's groups, for one head, into parts of one softmax: multiplies
/// the rows by their shares, and sets maximum and denominator to the values over all groups.
void JoinHead(const HeadOfGroups& of, const Attended& made) {
  if (of.begin == of.end) return;  // without any groups, the tensors have no memory
  float* const maximum = made.maximum.data_ptr<float>() + of.head;
  float* const denominator = made.denominator.data_ptr<float>() + of.head;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t g = of.begin; g < of.end; ++g)
    largest = std::max(largest, maximum[g * of.heads]);
  if (RHIZOME_MUTANT("hgt weighs groups without maxima")) largest = 0;
  float sum = 0;
  for (std::size_t g = of.begin; g < of.end; ++g) {
    float& part = denominator[g * of.heads];
    part *= std::exp(maximum[g * of.heads] - largest);
    if (RHIZOME_MUTANT("hgt has a softmax for each group")) part = 1;
    sum += part;
  }
  for (std::size_t g = of.begin; g < of.end; ++g) {
    const float share = denominator[g * of.heads] / sum;
    float* const row = FloatsOfRow(made.out, g) + of.head * of.width;
    for (std::size_t k = 0; k < of.width; ++k) row[k] *= share;
    maximum[g * of.heads] = largest;
    denominator[g * of.heads] = sum;
  }
}

void JoinGroups(const Attended& made, const TypedGraph& graph) {
  const std::span<const std::uint32_t> begins = graph.groups_of_targets.offsets;
  const auto heads = static_cast<std::size_t>(made.maximum.size(1));
  const std::size_t width = static_cast<std::size_t>(made.out.size(1)) / heads;
  ForTargets(graph.groups_of_targets, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      for (std::size_t h = 0; h < heads; ++h)
        JoinHead({begins[t], begins[t + 1], heads, h, width}, made);
    }
  });
}

/// Heads that are computed together.
struct HeadRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Divides the heads into ranges of at most ColumnsTogether columns.
std::vector<HeadRange> RangesOf(std::int64_t heads, std::int64_t width) {
  const std::int64_t most = ColumnsTogether(heads, width) / width;
  std::vector<HeadRange> ranges;
  for (std::int64_t first = 0; first < heads; first += most)
    ranges.push_back({first, std::min(most, heads - first)});
  return ranges;
}

/// The inputs of a call.
struct TypedInputs {
  LayerRows x;
  torch::Tensor weight, bias, query, attention, message;
  const TypedGraph& graph;

  std::int64_t heads() const { return attention.size(1); }
  std::int64_t width() const { return attention.size(2); }
};

/// The forward pass of a range of heads up to the rows of groups. Most of its memory is the keys
/// and values of sources, and the queries and rows of groups.
class HeadPass {
 public:
  HeadPass(const TypedInputs& in, const HeadRange& range)
      : in_(in),
        first_(range.first * in.width()),
        columns_(range.count * in.width()),
        query_(Columns(in.query)),
        attention_(in.attention.narrow(1, range.first, range.count)),
        message_(in.message.narrow(1, range.first, range.count)),
        weight_(KeysAndValues(in.weight)),
        values_(at::empty({in.graph.sources.size(), 2 * columns_})),
        of_groups_(at::empty({in.graph.groups.size(), columns_})) {
    // Keys and values are in the order of `sources.rows`.
    MultiplySorted(in.x, in.graph.sources,
                   PackedClasses(weight_.unsqueeze(1), KeysAndValues(in.bias)),
                   values_.data_ptr<float>());
    ToGroups(query_, attention_, /*turned=*/false, in.graph, of_groups_);
    made_ = AttendForward({values_, {}, of_groups_, {}}, in.graph.edges, {.heads = range.count});
    JoinGroups(made_, in.graph);
  }

  /// Computes the columns of these heads of the result.
  void AddTo(const torch::Tensor& out) const {
    const torch::Tensor sums = at::zeros(query_.sizes());
    FromGroups(made_.out, message_, /*turned=*/false, in_.graph, sums);
    out.narrow(1, first_, columns_).copy_(sums);
  }

  /// Adds the gradients of the inputs to `out`, in the order of TypedAttentionFunction::forward.
  /// The rows and the queries of groups are overwritten. `dots` [groups, heads of the range].
  void AddGradients(const torch::Tensor& gradient, const torch::Tensor& dots,
                    const variable_list& out) const {
    const RowsByClass& groups = in_.graph.groups;
    const torch::Tensor of_out = Columns(gradient);
    const std::int64_t heads = attention_.size(1), first_head = first_ / in_.width();
    out[5]
        .narrow(1, first_head, heads)
        .copy_(OfRelations(groups, SourceRows({made_.out}, groups, kSameRows),
                           SourceRows({of_out}, groups, in_.graph.of_targets), message_.sizes()));
    ToGroups(of_out, message_, /*turned=*/true, in_.graph, made_.out);  // now the rows' gradients
    const AttentionGradient of({values_, {}, of_groups_, {}},
                               {{}, made_.maximum, made_.denominator},
                               {.out = made_.out, .dots = dots}, in_.graph.edges, {.heads = heads});
    OfSources(of, out);
    of.Targets(of_groups_);  // now the gradients of the groups' queries
    out[4]
        .narrow(1, first_head, heads)
        .copy_(OfRelations(groups, SourceRows({query_}, groups, in_.graph.of_targets),
                           SourceRows({of_groups_}, groups, kSameRows), attention_.sizes()));
    const torch::Tensor of_query = at::zeros(query_.sizes());
    FromGroups(of_groups_, attention_, /*turned=*/true, in_.graph, of_query);
    out[3].narrow(1, first_, columns_).copy_(of_query);
  }

 private:
  torch::Tensor Columns(const torch::Tensor& of) const {
    return of.narrow(1, first_, columns_).contiguous();
  }

  /// Returns the rows of a weight, or the numbers of a bias, that belong to the range.
  torch::Tensor KeysAndValues(const torch::Tensor& of) const {
    const std::int64_t all = in_.heads() * in_.width();
    return at::cat({of.narrow(1, first_, columns_), of.narrow(1, all + first_, columns_)}, 1);
  }

  /// Computes the gradients of the keys and values of tiles of sources, and from these the
  /// gradients of x, of the weight and of the bias.
  void OfSources(const AttentionGradient& of, const variable_list& out) const {
    const RowsByClass& sources = in_.graph.sources;
    const SourceRows rows(in_.x, sources, kSameRows);
    for (std::size_t c = 0; c < static_cast<std::size_t>(weight_.size(0)); ++c) {
      const std::int64_t count = sources.begin[c + 1] - sources.begin[c];
      if (count == 0) continue;
      const auto number = static_cast<std::int64_t>(c);
      PackedWeight turned;
      if (out[0].defined()) turned = PackedWeight(weight_.select(0, number).t());
      WeightGradient sums(count, weight_.size(1), weight_.size(2));
      ForGroupTiles(sources, c, sums, [&](std::size_t part, const ClassTile& tile) {
        const torch::Tensor of_tile = AnyTile(weight_.size(1));
        of.OfSources(0, tile.first, tile.count, FloatsOfRow(values_, tile.first),
                     of_tile.data_ptr<float>());
        sums.Add(part, of_tile.data_ptr<float>(), rows.Of(tile),
                 static_cast<std::int64_t>(tile.count));
        if (out[0].defined()) AddToRows(of_tile, turned, sources, tile, out[0]);
      });
      CopyKeysAndValues(sums.Weight(), out[1].select(0, number));
      CopyKeysAndValues(sums.Bias(), out[2].select(0, number));
    }
  }

  void CopyKeysAndValues(const torch::Tensor& part, const torch::Tensor& to) const {
    const std::int64_t all = in_.heads() * in_.width();
    to.narrow(0, first_, columns_).copy_(part.narrow(0, 0, columns_));
    to.narrow(0, all + first_, columns_).copy_(part.narrow(0, columns_, columns_));
  }

  static void AddToRows(const torch::Tensor& gradient, const PackedWeight& turned,
                        const RowsByClass& classes, const ClassTile& tile,
                        const torch::Tensor& of_x) {
    const torch::Tensor made = AnyTile(of_x.size(1));
    const LayerRows rows{gradient};
    MultiplyRows(ProductTile(rows, 0).rows(), static_cast<std::int64_t>(tile.count), turned, {},
                 made.data_ptr<float>());
    for (std::size_t i = 0; i < tile.count; ++i) {
      const float* const from = FloatsOfRow(made, i);
      float* const to = FloatsOfRow(of_x, classes.rows[tile.first + i]);
      for (std::int64_t k = 0; k < of_x.size(1); ++k) to[k] += from[k];
    }
  }

  const TypedInputs& in_;
  const std::int64_t first_, columns_;
  const torch::Tensor query_;                // [targets, columns]
  const torch::Tensor attention_, message_;  // [relations, heads of the range, width, width]
  const torch::Tensor weight_;               // [vertex types, 2 * columns, in]
  const torch::Tensor values_;               // [sources, 2 * columns]
  const torch::Tensor of_groups_;            // [groups, columns], queries
  Attended made_;
};

/// Returns for each group and head the dot product of its target's row and gradient.
torch::Tensor DotsOfGroups(const torch::Tensor& out, const torch::Tensor& gradient,
                           const TypedInputs& in) {
  const torch::Tensor dots = (out * gradient).view({out.size(0), in.heads(), in.width()}).sum(2);
  const torch::Tensor of_groups = at::empty({in.graph.groups.size(), in.heads()});
  for (std::size_t g = 0; g < in.graph.target_of_group.size(); ++g)
    std::copy_n(FloatsOfRow(dots, in.graph.target_of_group[g]), in.heads(),
                FloatsOfRow(of_groups, g));
  return of_groups;
}

struct TypedAttentionFunction : torch::autograd::Function<TypedAttentionFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const torch::Tensor& query, const torch::Tensor& attention,
                               const torch::Tensor& message, const LayerRows* given,
                               const TypedGraph* graph) {
    const TypedInputs in{
        {table.contiguous(), given->place}, weight, bias, query, attention, message, *graph};
    torch::Tensor out = at::empty(query.sizes());
    for (const HeadRange& range : RangesOf(in.heads(), in.width())) HeadPass(in, range).AddTo(out);
    context->save_for_backward({in.x.table, weight, bias, query, attention, message, out});
    auto& data = context->saved_data;
    data["place"] = reinterpret_cast<std::int64_t>(given->place.data());
    data["places"] = static_cast<std::int64_t>(given->place.size());
    data["graph"] = reinterpret_cast<std::int64_t>(graph);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const std::span<const std::uint32_t> place(
        reinterpret_cast<const std::uint32_t*>(data["place"].toInt()),
        static_cast<std::size_t>(data["places"].toInt()));
    const TypedInputs in{{saved[0], place},
                         saved[1],
                         saved[2],
                         saved[3],
                         saved[4],
                         saved[5],
                         *reinterpret_cast<const TypedGraph*>(data["graph"].toInt())};
    const torch::Tensor gradient = gradients[0].contiguous();
    const torch::Tensor dots = DotsOfGroups(saved[6], gradient, in);
    variable_list out(8);
    for (std::size_t i = 1; i < 6; ++i) out[i] = at::zeros(saved[i].sizes());
    // Rows with `place` set are features, which need no gradient.
    if (context->needs_input_grad(0) && place.empty()) out[0] = at::zeros(saved[0].sizes());
    for (const HeadRange& range : RangesOf(in.heads(), in.width())) {
      HeadPass(in, range).AddGradients(gradient,
                                       dots.narrow(1, range.first, range.count).contiguous(), out);
    }
    return out;
  }
};

}  // namespace

std::int64_t ColumnsTogether(std::int64_t heads, std::int64_t width) {
  constexpr std::int64_t kColumns = 64;  // narrower rows would take as long
  return width * std::clamp<std::int64_t>(kColumns / width, 1, heads);
}

torch::Tensor AttendByType(const LayerRows& x, const torch::Tensor& query,
                           const TypedAttentionWeights& weights, const TypedGraph& graph) {
  const LayerRows floats = FloatRows(x);
  return TypedAttentionFunction::apply(floats.table, weights.key_value, weights.key_value_bias,
                                       query, weights.attention, weights.message, &floats, &graph);
}

}  // namespace internal
}  // namespace rhizome
