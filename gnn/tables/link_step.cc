#include "gnn/tables/link_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cache/kernels/product_kernels.h"
#include "cache/kernels/simd.h"
#include "cache/tables/gradient_sums.h"
#include "gnn/links/combination.h"
#include "gnn/tables/link_loss.h"
#include "index/base/parallel.h"

// Compute: for each side, (1) divides the edges into groups by the type of their open end;
// (2) scores tiles of queries, with losses, derivatives, and gradients of queries (ScoreTile);
// (3) adds the gradients of negatives (AddNegatives). Then it adds the gradients of all pairs to
// their rows. A pair is an end of an edge in a query, or a negative of a group.

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kTile = 64;  // queries, or negatives

std::size_t TilesOf(std::size_t count) { return (count + kTile - 1) / kTile; }

/// Adds the derivative of scale * sum of |x|^3.
void AddCubes(float scale, bool complex_rows, std::span<const float> row, float* gradient) {
  if (!complex_rows) {
    for (std::size_t d = 0; d < row.size(); ++d)
      gradient[d] += 3 * scale * std::fabs(row[d]) * row[d];
    return;
  }
  const std::size_t half = row.size() / 2;
  for (std::size_t d = 0; d < half; ++d) {
    const float modulus = std::sqrt(row[d] * row[d] + row[half + d] * row[half + d]);
    gradient[d] += 3 * scale * modulus * row[d];
    gradient[half + d] += 3 * scale * modulus * row[half + d];
  }
}

}  // namespace

/// One side of a batch. Pairs of the side are numbered from first_pair: the given ends of all
/// edges, their open ends, then the negatives of each group.
struct LinkStep::Side {
  const LinkBatch& batch;
  std::span<const float> values;
  std::span<const float> relations;
  std::size_t dim;
  EdgeEnd open;
  std::size_t first_pair;
  std::size_t first_relation_pair;
  const MaskedNegatives* masked;  // null: none
  float scale;                    // of a query in the mean

  std::size_t edges() const { return batch.edges.size(); }
  const std::vector<TypedNegatives>& negatives() const {
    return batch.negatives[open == EdgeEnd::kDst ? 1 : 0];
  }
  VertexId GivenOf(std::size_t edge) const {
    return open == EdgeEnd::kDst ? batch.edges[edge].src : batch.edges[edge].dst;
  }
  VertexId OpenOf(std::size_t edge) const {
    return open == EdgeEnd::kDst ? batch.edges[edge].dst : batch.edges[edge].src;
  }
  const float* At(std::uint32_t place) const { return values.data() + place * dim; }
};

/// The edges of a side whose open ends have one type, and their negatives.
struct LinkStep::Group {
  std::vector<std::uint32_t> edges;
  std::span<const VertexId> vertices;     // of the negatives
  std::span<const std::uint32_t> places;  // of the negatives, in batch.rows
  std::size_t first_pair = 0;             // of the negatives
};

LinkStep::LinkStep(const QueryDecoder& decoder, const Options& options, Vertices vertices)
    : decoder_(decoder), options_(options), vertices_(std::move(vertices)) {}

std::uint64_t LinkStep::Bytes(const LinkBatchOptions& batch, std::uint64_t types, std::size_t dim) {
  const std::uint64_t negatives = batch.negatives * std::max<std::uint64_t>(types, 1);
  const std::uint64_t pairs = 4 * batch.batch_size + 2 * negatives;
  return sizeof(float) *
         ((2 * pairs + 6 * batch.batch_size) * dim + batch.negatives * batch.batch_size);
}

void LinkStep::Compute(const LinkBatch& batch, std::span<const float> values,
                       std::span<const float> relations, LinkGradients& gradients,
                       const NegativeMask* mask) {
  const std::size_t dim = decoder_.dim();
  const std::size_t edges = batch.edges.size();
  std::size_t pairs = 4 * edges;
  for (const auto& side : batch.negatives)
    for (const TypedNegatives& typed : side) pairs += typed.vertices.size();
  pairs_.assign(pairs * dim, 0);
  row_of_pair_.resize(pairs);
  relation_pairs_.assign(2 * edges * options_.relation_width, 0);
  relation_of_pair_.resize(2 * edges);
  losses_.assign(edges, 0);
  const float scale = edges == 0 ? 0 : 1 / static_cast<float>(2 * edges);
  std::size_t first_pair = 0;
  for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
    Side side{.batch = batch,
              .values = values,
              .relations = relations,
              .dim = dim,
              .open = open,
              .first_pair = first_pair,
              .first_relation_pair = open == EdgeEnd::kDst ? 0 : edges,
              .masked = mask == nullptr ? nullptr : &(*mask)[open == EdgeEnd::kDst ? 1 : 0],
              .scale = scale};
    ComputeSide(side);
    first_pair += 2 * edges;
    for (const TypedNegatives& typed : side.negatives()) first_pair += typed.vertices.size();
  }
  gradients.loss = 0;
  for (const double loss : losses_) gradients.loss += loss;
  gradients.rows.resize(batch.rows.size() * dim);
  GradientSums(row_of_pair_, batch.rows.size()).Add(pairs_, dim, gradients.rows);

  gradients.relation_rows.clear();
  gradients.relations.clear();
  if (options_.relation_width == 0) return;
  gradients.relation_rows = relation_of_pair_;
  std::ranges::sort(gradients.relation_rows);
  const auto repeated = std::ranges::unique(gradients.relation_rows);
  gradients.relation_rows.erase(repeated.begin(), repeated.end());
  for (std::uint32_t& row : relation_of_pair_)
    row = static_cast<std::uint32_t>(std::ranges::lower_bound(gradients.relation_rows, row) -
                                     gradients.relation_rows.begin());
  gradients.relations.resize(gradients.relation_rows.size() * options_.relation_width);
  GradientSums(relation_of_pair_, gradients.relation_rows.size())
      .Add(relation_pairs_, options_.relation_width, gradients.relations);
}

std::uint32_t LinkStep::RelationOf(const Side& side, std::size_t edge) const {
  const bool inverse = options_.reciprocal && side.open == EdgeEnd::kSrc;
  return static_cast<std::uint32_t>(side.batch.edges[edge].type +
                                    (inverse ? options_.relations : 0));
}

QueryRows LinkStep::QueryOf(const Side& side, std::size_t edge) const {
  const bool inverse = options_.reciprocal && side.open == EdgeEnd::kSrc;
  const std::size_t width = options_.relation_width;
  return {.given = side.At(row_of_pair_[side.first_pair + edge]),
          .relation = width == 0 ? nullptr
                                 : side.relations.data() +
                                       RelationOf(side, edge) * options_.relation_stride,
          .open = inverse ? EdgeEnd::kDst : side.open};
}

void LinkStep::ComputeSide(Side& side) {
  const std::size_t edges = side.edges();
  for (std::size_t e = 0; e < edges; ++e) {
    row_of_pair_[side.first_pair + e] = PlaceOf(side.batch, side.GivenOf(e));
    row_of_pair_[side.first_pair + edges + e] = PlaceOf(side.batch, side.OpenOf(e));
    relation_of_pair_[side.first_relation_pair + e] = RelationOf(side, e);
  }
  std::size_t first_pair = side.first_pair + 2 * edges;
  const std::vector<TypedNegatives>& negatives = side.negatives();
  for (const TypedNegatives& typed : negatives) {
    Group group{.edges = {}, .vertices = typed.vertices, .places = {}, .first_pair = first_pair};
    for (std::size_t e = 0; e < edges; ++e)
      if (negatives.size() == 1 || vertices_.type_of(side.OpenOf(e)) == typed.type)
        group.edges.push_back(static_cast<std::uint32_t>(e));
    for (std::size_t k = 0; k < typed.vertices.size(); ++k)
      row_of_pair_[first_pair + k] = PlaceOf(side.batch, typed.vertices[k]);
    group.places = std::span(row_of_pair_).subspan(first_pair, typed.vertices.size());
    ComputeGroup(side, group);
    first_pair += typed.vertices.size();
  }
}

void LinkStep::ComputeGroup(Side& side, const Group& group) {
  const std::size_t count = group.edges.size();
  queries_.resize(count * side.dim);
  derivatives_.resize(group.places.size() * count);
  ParallelFor(TilesOf(count), [&](std::size_t tile) {
    ScoreTile(side, group, tile * kTile, std::min(kTile, count - tile * kTile));
  });
  if (decoder_.combination() == Combination::kDot) {
    query_panels_.resize(PanelsOf(side.dim) * count * kPanel);
    for (std::size_t q = 0; q < count; ++q)
      for (std::size_t d = 0; d < side.dim; ++d)
        query_panels_[(d / kPanel * count + q) * kPanel + d % kPanel] = queries_[q * side.dim + d];
  }
  ParallelFor(TilesOf(group.places.size()), [&](std::size_t tile) {
    AddNegatives(side, group, tile * kTile, std::min(group.places.size(), (tile + 1) * kTile));
  });
}

/// Computes losses, derivatives and gradients of queries for edges [first, first + count) of the
/// group, except the gradients of negatives.
void LinkStep::ScoreTile(Side& side, const Group& group, std::size_t first, std::size_t count) {
  const std::size_t dim = side.dim;
  const std::size_t negatives = group.places.size();
  const Combination by = decoder_.combination();
  float* const queries = queries_.data() + first * dim;
  for (std::size_t i = 0; i < count; ++i)
    decoder_.Query(QueryOf(side, group.edges[first + i]), queries + i * dim);
  const ProductRows rows{
      .x = side.values.data(), .stride = dim, .columns = dim, .place = group.places.data()};
  std::vector<float> scores(negatives * count);  // [negatives, count]
  PackedQueries(by, dim, {queries, count * dim}).Score(rows, negatives, scores.data(), count);

  std::vector<float> truths(count);
  std::vector<float> losses(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t edge = group.edges[first + i];
    truths[i] = Combine(by, dim, queries + i * dim,
                        side.At(row_of_pair_[side.first_pair + side.edges() + edge]));
    for (std::size_t k = 0; k < negatives; ++k)
      if (group.vertices[k] == side.OpenOf(edge)) scores[k * count + i] = kMaskedScore;
    if (side.masked == nullptr) continue;
    for (const std::uint32_t k : side.masked->Of(edge)) scores[k * count + i] = kMaskedScore;
  }
  LossesOfQueries(options_.loss, options_.margin, side.scale, truths, scores, losses);
  for (std::size_t i = 0; i < count; ++i) losses_[group.edges[first + i]] += losses[i];
  for (std::size_t k = 0; k < negatives; ++k)
    std::copy_n(scores.data() + k * count, count,
                derivatives_.data() + k * group.edges.size() + first);

  std::vector<float> of_negatives;  // gradients of the queries, in panels
  if (by == Combination::kDot) {
    of_negatives.resize(PanelsOf(count) * dim * kPanel);
    Products().gradient(
        {.rows = rows, .gradient = scores.data(), .outputs = count, .sum = of_negatives.data()}, 0,
        negatives);
  }
  std::vector<float> gradient(dim);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t edge = group.edges[first + i];
    const float* const query = queries + i * dim;
    const std::size_t open_pair = side.first_pair + side.edges() + edge;
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    if (by == Combination::kDot) {
      const float* const panel = of_negatives.data() + i / kPanel * dim * kPanel + i % kPanel;
      for (std::size_t d = 0; d < dim; ++d) gradient[d] = panel[d * kPanel];
    } else {
      for (std::size_t k = 0; k < negatives; ++k)
        if (const float derivative = scores[k * count + i]; derivative != 0)
          AddCombineGradient(by, dim, query, side.At(group.places[k]), derivative, gradient.data(),
                             nullptr);
    }
    AddCombineGradient(by, dim, query, side.At(row_of_pair_[open_pair]), truths[i], gradient.data(),
                       pairs_.data() + open_pair * dim);
    const std::size_t width = options_.relation_width;
    decoder_.AddQueryGradient(
        QueryOf(side, edge), gradient.data(), pairs_.data() + (side.first_pair + edge) * dim,
        width == 0 ? nullptr : relation_pairs_.data() + (side.first_relation_pair + edge) * width);
    if (options_.n3 != 0) AddPenalty(side, edge);
  }
}

void LinkStep::AddPenalty(Side& side, std::size_t edge) {
  const float scale = options_.n3 * side.scale;
  for (const std::size_t pair : {side.first_pair + edge, side.first_pair + side.edges() + edge})
    AddCubes(scale, options_.complex_rows, {side.At(row_of_pair_[pair]), side.dim},
             pairs_.data() + pair * side.dim);
  // Rows of relations that are narrower are angles.
  if (const std::size_t width = options_.relation_width; width == side.dim)
    AddCubes(scale, options_.complex_rows,
             side.relations.subspan(RelationOf(side, edge) * options_.relation_stride, width),
             relation_pairs_.data() + (side.first_relation_pair + edge) * width);
}

/// Sets the gradients of negatives [first, end) of the group.
void LinkStep::AddNegatives(const Side& side, const Group& group, std::size_t first,
                            std::size_t end) {
  const std::size_t count = group.edges.size();
  float* const out = pairs_.data() + group.first_pair * side.dim;
  if (decoder_.combination() == Combination::kDot) {
    Products().multiply({.rows = {.x = derivatives_.data(), .stride = count, .columns = count},
                         .panels = query_panels_.data(),
                         .outputs = side.dim,
                         .out = out,
                         .out_stride = side.dim},
                        first, end);
    return;
  }
  for (std::size_t k = first; k < end; ++k)
    for (std::size_t q = 0; q < count; ++q)
      if (const float derivative = derivatives_[k * count + q]; derivative != 0)
        AddCombineGradient(decoder_.combination(), side.dim, queries_.data() + q * side.dim,
                           side.At(group.places[k]), derivative, nullptr, out + k * side.dim);
}

}  // namespace internal
}  // namespace rhizome
