#include <vector>

#include "gnn/full_graph/full_network.h"
#include "gnn/ops/activation.h"

// Attention layers of FullNetwork, tile by tile: the weighted mean computed from aggregated rows,
// and the rows of gradients that the backward pass aggregates. GatherHeads describes the columns of
// both.

namespace rhizome {
inline namespace internal {
namespace {

torch::Tensor ReciprocalOf(const torch::Tensor& weights) {
  return at::where(weights > 0, 1 / weights, at::zeros_like(weights));
}

/// The parts of aggregated rows (GatherHeads::gathered) for GAT, as [rows, heads] or [rows, heads,
/// columns of a head].
struct AttendedParts {
  torch::Tensor positive, negative, positive_weights, negative_weights, most, query, reciprocal;

  AttendedParts(const GatherHeads& of, const torch::Tensor& rows) {
    const auto width = static_cast<std::int64_t>(of.width);
    const auto heads = static_cast<std::int64_t>(of.heads);
    const auto wide = [&](std::int64_t from) {
      return rows.narrow(1, from, width).reshape({-1, heads, width / heads});
    };
    const auto each = [&](std::int64_t number) {
      return rows.narrow(1, 2 * width + number * heads, heads);
    };
    positive = wide(0);
    negative = wide(width);
    positive_weights = each(0);
    negative_weights = each(1);
    most = each(2);
    query = each(3);
    reciprocal = ReciprocalOf(positive_weights + negative_weights);
  }
};

/// The parts of aggregated rows for GATv2 (AttendScore::kGatv2).
struct AttendedGatv2Parts {
  torch::Tensor sums, most, reciprocal;

  AttendedGatv2Parts(const GatherHeads& of, const torch::Tensor& rows) {
    const auto width = static_cast<std::int64_t>(of.width);
    const auto heads = static_cast<std::int64_t>(of.heads);
    sums = rows.narrow(1, 0, width).reshape({-1, heads, width / heads});
    reciprocal = ReciprocalOf(rows.narrow(1, width, heads));
    most = rows.narrow(1, width + heads, heads);
  }
};

/// Writes tensors with equal numbers of rows side by side.
void PutParts(const std::vector<torch::Tensor>& parts, torch::Tensor& output) {
  std::int64_t column = 0;
  for (const torch::Tensor& part : parts) {
    output.narrow(1, column, part.size(1)).copy_(part);
    column += part.size(1);
  }
}

}  // namespace

/// Returns the heads of an attention layer, with the dropout of its edges.
GatherHeads FullNetwork::HeadsIn(std::uint32_t layer, const Mode& mode) const {
  GatherHeads heads = HeadsOf(At(layer));
  if (!Attends(layer)) return heads;
  const AttentionShape shape = At(layer).ShapeOfAttention(mode.At({}));
  const DropoutDraws draws = DrawsOf(shape.dropout);
  if (heads.second()) heads.vectors = At(layer).ScoreVectors().const_data_ptr<float>();
  heads.dropout = {.dropped = draws.dropped, .scale = draws.scale, .seed = shape.seed};
  return heads;
}

/// Returns the attention-weighted mean of each row's neighbours. `attended`: aggregated rows.
torch::Tensor FullNetwork::Mean(std::uint32_t layer, const torch::Tensor& attended) const {
  if (AsksWhole(layer)) {
    const AttendedGatv2Parts parts(HeadsOf(At(layer)), attended);
    return (parts.sums * parts.reciprocal.unsqueeze(2)).reshape({attended.size(0), -1});
  }
  const AttendedParts parts(HeadsOf(At(layer)), attended);
  return ((parts.positive + parts.negative) * parts.reciprocal.unsqueeze(2))
      .reshape({attended.size(0), At(layer).pieces().width});
}

/// Writes the gradient of the layer's sums in the form that the backward pass aggregates (for
/// attention GatherHeads::gradient). `prepared`: the layer's prepared rows; for attention only.
void FullNetwork::PutSumsGradient(std::uint32_t layer, const Work& work,
                                  const torch::Tensor& gradient, const torch::Tensor& prepared,
                                  torch::Tensor& output) const {
  const torch::NoGradGuard guard;
  const torch::Tensor given = gradient.defined() ? gradient : at::zeros_like(work.sums);
  if (!Attends(layer)) {
    const std::int64_t columns = given.size(1);
    output.narrow(1, 0, columns).copy_(given);
    if (work.winners.defined()) output.narrow(1, columns, columns).copy_(work.winners);
    return;
  }
  const GatherHeads heads = HeadsOf(At(layer));
  const auto width = static_cast<std::int64_t>(heads.width);
  if (heads.second()) {
    const AttendedGatv2Parts parts(heads, work.attended);
    const torch::Tensor of_heads = given.reshape(parts.sums.sizes());
    const torch::Tensor product = (of_heads * work.sums.reshape(parts.sums.sizes())).sum(2);
    return PutParts({given, prepared.narrow(1, width, width), parts.most, parts.reciprocal, product,
                     prepared.narrow(1, 0, width)},
                    output);
  }
  const AttendedParts parts(heads, work.attended);
  const torch::Tensor of_heads = given.reshape(parts.positive.sizes());
  const torch::Tensor product = (of_heads * work.sums.reshape(parts.positive.sizes())).sum(2);
  // Gradient of the query: the sum over the row's edges of weight * (g . z - g . mean), times the
  // slope where the argument of LeakyReLU is negative.
  const torch::Tensor sums = (of_heads * (parts.positive + heads.slope * parts.negative)).sum(2);
  const torch::Tensor weights = parts.positive_weights + heads.slope * parts.negative_weights;
  const torch::Tensor of_query = (sums - product * weights) * parts.reciprocal;
  const auto own = width + static_cast<std::int64_t>(heads.heads);
  PutParts({given, parts.query, parts.most, parts.reciprocal, product, of_query,
            prepared.narrow(1, 0, own)},
           output);
}

/// Returns the prepared rows with their aggregated gradient. For GATv2:
///   prepared row                  [z | q]
///   its gradient                  [E + a S | a T]
///   gradient of the vectors a     the sum over all rows of z S + q T, because LeakyReLU(x) is
///                                 x LeakyReLU'(x)
FullNetwork::Objective FullNetwork::OfPrepared(std::uint32_t layer, const PassTile& tile,
                                               const torch::Tensor& prepared) const {
  if (!AsksWhole(layer)) return {.of = {prepared}, .gradients = {tile.gathered[0]}};
  const torch::NoGradGuard guard;
  const std::int64_t width = At(layer).pieces().width;
  const torch::Tensor vectors = At(layer).ScoreVectors();
  const torch::Tensor a = vectors.detach().reshape({1, width});
  const torch::Tensor e = tile.gathered[0].narrow(1, 0, width);
  const torch::Tensor s = tile.gathered[0].narrow(1, width, width);
  const torch::Tensor t = tile.gathered[1];
  const torch::Tensor rows = prepared.detach();
  const torch::Tensor of_vectors =
      (rows.narrow(1, 0, width) * s + rows.narrow(1, width, width) * t).sum(0);
  return {.of = {prepared, vectors},
          .gradients = {at::cat({e + a * s, a * t}, 1), of_vectors.reshape(vectors.sizes())}};
}

}  // namespace internal
}  // namespace rhizome
