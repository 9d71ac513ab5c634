#include "gnn/full_graph/full_arrays.h"

#include <fmt/format.h>

#include <utility>

namespace rhizome {
inline namespace internal {

std::string NameOfArray(const char* what, std::uint32_t layer) {
  return fmt::format("{}-{}", what, layer + 1);
}

bool WantsSumsGradient(const Model& model, std::uint32_t layer) {
  return layer > 0 || model.layer(layer).prepares_gathered();
}

bool TakesMax(const Layer& layer) { return layer.pieces().reduce.by == Reduction::kMax; }

GatherHeads HeadsOf(const Layer& layer) {
  const ReducePiece& reduce = layer.pieces().reduce;
  return {.score = reduce.attention.score,
          .heads = static_cast<std::size_t>(reduce.attention.heads),
          .width = static_cast<std::size_t>(layer.pieces().width),
          .slope = reduce.attention.slope,
          .own = reduce.own_joins};
}

std::int64_t GatheredRowColumns(const Layer& layer) {
  if (!layer.pieces().attends()) return layer.gathered_columns();
  return static_cast<std::int64_t>(HeadsOf(layer).prepared());
}

std::int64_t SumsGradientColumns(const Model& model, std::uint32_t layer) {
  const Layer& of = model.layer(layer);
  if (of.pieces().attends()) return static_cast<std::int64_t>(HeadsOf(of).gradient());
  return SumsColumns(model, layer);
}

std::int64_t SumsColumns(const Model& model, std::uint32_t layer) {
  const Layer& of = model.layer(layer);
  if (of.pieces().attends()) return static_cast<std::int64_t>(HeadsOf(of).gathered());
  const bool winners = TakesMax(of) && WantsSumsGradient(model, layer);
  return winners ? 2 * of.gathered_columns() : of.gathered_columns();
}

std::vector<ScratchShape> ArraysOf(const Model& model, std::uint64_t rows,
                                   std::uint64_t chunk_rows) {
  std::vector<ScratchShape> shapes;
  const auto add = [&](bool wanted, const char* what, std::uint32_t layer, std::int64_t columns) {
    if (!wanted) return;
    shapes.push_back({.name = NameOfArray(what, layer),
                      .rows = rows,
                      .dim = static_cast<std::uint64_t>(columns),
                      .chunk_rows = chunk_rows});
  };
  for (std::uint32_t k = 0; k < model.layers(); ++k) {
    const Layer& layer = model.layer(k);
    const bool last = k + 1 == model.layers();
    const bool norms = layer.batch_norms() > 0;
    add(layer.prepares_gathered(), kPrepared, k, GatheredRowColumns(layer));
    add(!last || norms, kSums, k, SumsColumns(model, k));
    add(!last, kHidden, k, layer.raw_out());
    add(!last && norms, kGradient, k, layer.raw_out());
    add(WantsSumsGradient(model, k), kSumsGradient, k, SumsGradientColumns(model, k));
    add(k > 0 && layer.finish_reads_raw(), kOwnGradient, k, layer.shape().raw);
  }
  return shapes;
}

bool CanRecomputeSums(const Model& model, std::uint32_t layer) {
  const Layer& of = model.layer(layer);
  // The first layer aggregates the features. The sums of a layer with batch norms are read by
  // several passes.
  return layer > 0 && layer + 1 < model.layers() && of.batch_norms() == 0 &&
         !of.prepares_gathered();
}

}  // namespace internal
}  // namespace rhizome
