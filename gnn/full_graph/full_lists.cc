#include "gnn/full_graph/full_lists.h"

#include <algorithm>
#include <utility>

#include "cache/feed/resolve_sampling.h"
#include "cache/feed/row_degrees.h"

namespace rhizome {
inline namespace internal {
namespace {

Direction OtherSide(Direction direction) {
  if (direction == Direction::kBoth) return Direction::kBoth;
  return direction == Direction::kIn ? Direction::kOut : Direction::kIn;
}

/// Computes the factors of a reduction: for each row as a target, for its own row in its sum, and
/// for the row as a source.
Result<RowFactors> MakeFactors(const ReducePiece& reduce, const GraphSnapshot& graph,
                               const PassDrawOptions& draw,
                               std::span<const std::uint32_t> degrees) {
  RowFactors factors;
  const bool counts_alike = reduce.by == Reduction::kSum && !reduce.symmetric;
  if (counts_alike || !reduce.weighs()) return factors;  // all ones
  std::vector<float> weighted;
  if (draw.weights && !draw.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(weighted, WeightedDegrees(graph, draw.direction));
  }
  const std::size_t rows = graph.vertex_count();
  factors.target.resize(rows);
  if (reduce.own_joins) factors.own.resize(rows);
  if (reduce.symmetric) factors.source.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint32_t degree = draw.no_edges ? 0 : degrees[row];
    const float weight = weighted.empty() ? static_cast<float>(degree) : weighted[row];
    const float own_scale =
        reduce.symmetric ? (weighted.empty() ? GcnScale(degree) : GcnScale(weight)) : 1;
    const TargetScales scales =
        ScalesOf(reduce, {.listed = degree, .degree = degree, .weight = weight}, own_scale);
    factors.target[row] = scales.target;
    if (reduce.own_joins) factors.own[row] = scales.self;
    if (reduce.symmetric) factors.source[row] = own_scale;
  }
  return factors;
}

}  // namespace

Result<std::unique_ptr<FullLists>> OpenFullSides(const TrainJob& job, const TrainOptions& options,
                                                 const JobControl& control) {
  auto sides = std::make_unique<FullLists>();
  const GraphSnapshot& graph = *job.graph;
  PassDrawOptions& draw = sides->forward.draw;
  draw.no_edges = options.model.no_edges;
  draw.seed = options.learning.seed;
  draw.threads = std::max<std::uint32_t>(options.resources.threads, 1);
  if (!draw.no_edges) {
    draw.direction = job.sampling.sampler.direction;
    draw.weights = job.sampling.edge_weights;
  }
  sides->backward.draw = draw;
  sides->backward.draw.direction = OtherSide(draw.direction);
  if (draw.no_edges) {
    RHIZOME_ASSIGN_OR_RETURN(sides->factors,
                             MakeFactors(job.model->layer(0).pieces().reduce, graph, draw, {}));
  } else {
    RHIZOME_ASSIGN_OR_RETURN(sides->forward.degrees, DegreesOfRows(graph, draw.direction));
    RHIZOME_ASSIGN_OR_RETURN(sides->backward.degrees,
                             DegreesOfRows(graph, sides->backward.draw.direction));
    RHIZOME_ASSIGN_OR_RETURN(sides->factors, MakeFactors(job.model->layer(0).pieces().reduce, graph,
                                                         draw, sides->forward.degrees));
    RHIZOME_ASSIGN_OR_RETURN(sides->lists, ListsOnDisk::Open(graph, draw.direction, 0, {},
                                                             options.resources.io, control));
    RHIZOME_ASSIGN_OR_RETURN(sides->other_lists,
                             ListsOnDisk::Open(graph, sides->backward.draw.direction, 0, {},
                                               options.resources.io, control));
    if (sides->lists != nullptr) sides->forward.draw.neighbors = sides->lists->source();
    if (sides->other_lists != nullptr)
      sides->backward.draw.neighbors = sides->other_lists->source();
  }
  sides->forward.factors = {
      .source = sides->factors.source, .target = sides->factors.target, .own = sides->factors.own};
  // In the backward pass an edge has the same weight, so source and target factors are swapped.
  sides->backward.factors = {
      .source = sides->factors.target, .target = sides->factors.source, .own = sides->factors.own};
  return sides;
}

}  // namespace internal
}  // namespace rhizome
