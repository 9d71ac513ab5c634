#include "gnn/models/conv.h"

#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// First dropout draw of attention; each layer has one.
constexpr std::uint64_t kAttentionDraws = std::uint64_t{1} << 33;

torch::Tensor Reduce(const ReducePiece& piece, const LayerRows& rows, const LayerGraph& graph) {
  const torch::Tensor x = rows.place.empty() ? rows.table : rows.Floats();
  if (piece.by == Reduction::kMax) return AggregateMax(x, graph.lists);
  return AggregateSum(x, graph.lists, graph.factors());
}

}  // namespace

torch::Tensor Conv::Project(const LayerRows&, const RunMode&) const {
  RHIZOME_CHECK(false);  // only called for kinds that project, which override it
  return {};
}

torch::Tensor Conv::SourceScores(const torch::Tensor&) const {
  RHIZOME_CHECK(false);  // only called for kinds with such scores, which override it
  return {};
}

torch::Tensor Conv::Query(const LayerRows&, const torch::Tensor&) const {
  RHIZOME_CHECK(false);  // only called for kinds with attention, which override it
  return {};
}

void Conv::Relate(const LayerRows&, const RowsByClass&, std::span<const std::uint32_t>,
                  float*) const {
  RHIZOME_CHECK(false);  // only called for kinds with ConvPieces::relates, which override it
}

AttentionShape Conv::ShapeOfAttention(const RunMode& mode) const {
  const ConvPieces made = pieces();
  const AttentionPiece& piece = made.reduce.attention;
  AttentionShape shape{.heads = piece.heads, .slope = piece.slope, .own = made.reduce.own_joins};
  if (mode.training()) {
    shape.dropout = piece.dropout;
    shape.seed = mode.Seed(kAttentionDraws + number());
  }
  return shape;
}

torch::Tensor Conv::Attended(const LayerRows& x, const LayerGraph& graph,
                             const RunMode& mode) const {
  const torch::Tensor values = pieces().projects ? Project(x, mode) : x.Floats();
  const AttentionShape shape = ShapeOfAttention(mode);
  const std::int64_t targets = graph.targets();
  const torch::Tensor query = Query(x.First(targets), values.narrow(0, 0, targets));
  if (pieces().score_columns() > 0)
    return Attend(values, SourceScores(values), query, graph.lists, shape);
  return AttendGatv2(values, query, ScoreVectors(), graph.lists, shape);
}

torch::Tensor Conv::Forward(const LayerRows& x, const LayerGraph& graph, const torch::Tensor& first,
                            const Activation& activation, const RunMode& mode) const {
  const ConvPieces made = pieces();
  torch::Tensor reduced;
  if (made.attends()) {
    reduced = Attended(x, graph, mode);
  } else {
    reduced = Reduce(made.reduce, made.projects ? LayerRows{Project(x, mode)} : x, graph);
  }
  const UpdateRows rows{
      .own = x.First(graph.targets()), .reduced = reduced, .first = first, .both = {}};
  return Activate(Update(rows, mode), activation);
}

std::uint64_t Conv::TargetNumbers() const { return 8 * static_cast<std::uint64_t>(pieces().width); }

std::uint64_t Conv::SourceNumbers() const { return 4 * static_cast<std::uint64_t>(pieces().width); }

}  // namespace internal
}  // namespace rhizome
