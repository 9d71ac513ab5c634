#include <algorithm>
#include <utility>

#include "gnn/full_graph/full_network.h"
#include "gnn/full_graph/tile_gradients.h"
#include "storage/base/mutant.h"

// Computation of a tile of rows in FullNetwork, with gradients.

namespace rhizome {
inline namespace internal {

/// Computes the rows that a layer aggregates; for attention with their scores or queries
/// (GatherHeads::prepared).
torch::Tensor FullNetwork::Prepare(std::uint32_t layer, const torch::Tensor& raw,
                                   const RunMode& mode) const {
  return Attends(layer) ? At(layer).PrepareAttended(raw, mode)
                        : At(layer).PrepareGathered(raw, mode);
}

FullNetwork::Work FullNetwork::Compute(std::uint32_t layer, const Mode& mode, const PassTile& tile,
                                       const Incoming& incoming) const {
  Work work;
  if (incoming.raw) work.raw = Leaf(incoming.raw(tile), WantsOwnGradient(layer));
  torch::Tensor sums = incoming.sums(tile);
  if (TakesMax(At(layer))) {
    const std::int64_t columns = At(layer).gathered_columns();
    if (KeepsWinners(layer)) work.winners = sums.narrow(1, columns, columns);
    sums = sums.narrow(1, 0, columns).contiguous();
  }
  if (Attends(layer)) {
    work.attended = sums;
    sums = Mean(layer, sums);
  }
  work.sums = Leaf(sums, WantsSumsGradient(layer));
  const bool norms = mode.learns && At(layer).batch_norms() > 0;
  for (const Norm& norm : norms_[layer])
    work.norms.known.push_back({Leaf(norm.known.mean, true), Leaf(norm.known.variance, true)});
  work.out =
      At(layer).FinishGathered(work.raw, work.sums, mode.At(tile, norms ? &work.norms : nullptr));
  return work;
}

FullNetwork::Objective FullNetwork::Wanted(std::uint32_t layer, const Mode& mode,
                                           const PassTile& tile, const Incoming& incoming,
                                           const Work& work, TileSums& sums) const {
  Objective wanted;
  if (incoming.gradient) {
    wanted.of.push_back(work.out);
    wanted.gradients.push_back(incoming.gradient(tile, sums));
  } else if (const std::vector<Row> rows = Members(tile, Split::kTrain); !rows.empty()) {
    const torch::Tensor at = torch::tensor(at::ArrayRef<std::int64_t>(rows)) - tile.first;
    const torch::Tensor scores = model_.ScoresOf(work.out, mode.At(tile)).index_select(0, at);
    const torch::Tensor loss = task_loss_.SumOf(scores, rows);
    if (sums.count() > loss_sum()) {
      sums.Add(tile.group, loss_sum(), loss.to(torch::kFloat64));
      if (sink_ != nullptr) Give(rows, scores, *sink_);
    }
    wanted.of.push_back(loss);
    wanted.gradients.push_back(torch::full({}, 1 / weights_.train));
  }
  // Rows also affect each other through the statistics of batch norms. Add the gradients of the
  // statistics that are known already.
  const auto rows = static_cast<double>(labels_.split.size());
  for (std::size_t i = 0; i < norms_[layer].size(); ++i) {
    const Norm& norm = norms_[layer][i];
    if (!norm.gradient.mean.defined()) continue;
    const torch::Tensor given = work.norms.given[i];
    wanted.of.push_back(given);
    wanted.gradients.push_back(
        (norm.gradient.mean + 2 * norm.gradient.variance * (given.detach() - norm.known.mean)) /
        rows);
  }
  return wanted;
}

/// Computes the gradient of the rows that layer `above` reads: the gradient of the targets' own
/// rows (`own`) plus the aggregated gradient. `raw`: these rows, if the layer prepares rows before
/// it aggregates them; the gradients of the weights that prepare them are then added to `sums`.
/// Returns an undefined tensor if the layer prepares the features, which have no gradient.
torch::Tensor FullNetwork::GradientAbove(std::uint32_t above, const Mode& mode,
                                         const PassTile& tile, const TileTensor& own,
                                         const TileTensor& raw, TileSums& sums) const {
  torch::Tensor gathered = tile.gathered[0];
  if (raw) {
    const torch::Tensor rows = Leaf(raw(tile), above > 0);
    const torch::Tensor prepared = Prepare(above, rows, mode.At(tile));
    std::vector<torch::Tensor> wanted = ParametersOf(above);
    if (above > 0) wanted.push_back(rows);
    const Objective objective = OfPrepared(above, tile, prepared);
    std::vector<torch::Tensor> gradients = GradientsOf(objective.of, objective.gradients, wanted);
    if (above > 0) {
      gathered = gradients.back();
      gradients.pop_back();
    }
    for (std::size_t i = 0; i < gradients.size(); ++i)
      sums.Add(tile.group, first_parameter_[above] + i, gradients[i]);
    if (above == 0) return {};
  }
  const std::int64_t columns = At(above).shape().raw;
  torch::Tensor gradient = own ? own(tile).clone() : torch::zeros({tile.count, columns});
  gradient.narrow(1, 0, gathered.size(1)).add_(gathered);
  return gradient;
}

}  // namespace internal
}  // namespace rhizome
