#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gnn/full_graph/full_network.h"
#include "gnn/full_graph/tile_gradients.h"
#include "storage/base/mutant.h"

// The backward pass of FullNetwork, from the last layer to the first:
//   1. FromLoss, FromArrays or FromAbove starts a pass that yields the gradient of a layer's rows.
//   2. BackwardNorms, for a layer with batch norms, stores that gradient and computes the gradients
//      of the norms' statistics, in one pass per norm.
//   3. BackwardLayer recomputes the layer tile by tile with autograd, sums the gradients of its
//      weights, and writes the gradients of its sums and of the targets' own rows.
//   4. BackwardPrepared computes the gradients of the weights that prepare the features, if any.

namespace rhizome {
inline namespace internal {
namespace {

void CopyTo(const torch::Tensor& values, torch::Tensor& output) {
  if (values.defined()) {
    output.copy_(values);
  } else {
    output.zero_();
  }
}

}  // namespace

/// Starts the backward pass of the last layer. The same pass aggregates the layer's sums.
FullNetwork::Incoming FullNetwork::FromLoss(std::uint32_t layer, const Mode& mode) const {
  Incoming incoming{.pass = GatherPass(layer, mode, fmt::format("forward {}, loss", layer + 1)),
                    .gradient = nullptr,
                    .sums = [](const PassTile& tile) { return tile.gathered[0]; },
                    .raw = nullptr};
  incoming.raw = RawOf(layer, incoming.pass);
  return incoming;
}

/// Starts a pass over a layer whose sums are in a scratch array. The gradient of its rows is read
/// from scratch, too, unless it is computed from the loss (`from_loss`).
FullNetwork::Incoming FullNetwork::FromArrays(std::uint32_t layer, bool from_loss) const {
  Incoming incoming;
  const auto read = [&](ScratchArray* array) -> TileTensor {
    return [input = InputOf(incoming.pass, {array})](const PassTile& tile) {
      return tile.inputs[input];
    };
  };
  incoming.sums = read(Array(kSums, layer));
  incoming.raw = RawOf(layer, incoming.pass);
  if (from_loss) return incoming;
  const TileTensor gradient = read(Array(kGradient, layer));
  incoming.gradient = [gradient](const PassTile& tile, TileSums&) { return gradient(tile); };
  return incoming;
}

/// Starts the backward pass of a layer below another one. The same pass aggregates the gradients of
/// the layer above.
FullNetwork::Incoming FullNetwork::FromAbove(std::uint32_t layer, const Mode& mode) const {
  const std::uint32_t above = layer + 1;
  Incoming incoming{.pass = GradientPass(above, mode, fmt::format("backward {}", above + 1)),
                    .gradient = nullptr,
                    .sums = nullptr,
                    .raw = nullptr};
  GraphPass& pass = incoming.pass;
  TileTensor own, raw;
  if (WantsOwnGradient(above)) {
    ScratchArray* const array = Array(kOwnGradient, above);
    own = [input = InputOf(pass, {array})](const PassTile& tile) { return tile.inputs[input]; };
  }
  if (At(above).prepares_gathered()) {
    raw = [input = InputOf(pass, RowsBefore(above))](const PassTile& tile) {
      return tile.inputs[input];
    };
  }
  incoming.gradient = [this, above, mode, own, raw](const PassTile& tile, TileSums& sums) {
    return GradientAbove(above, mode, tile, own, raw, sums);
  };
  if (At(layer).batch_norms() > 0) return incoming;  // BackwardNorms reads the sums later
  if (StoresSums(layer)) {
    incoming.sums = [input = InputOf(pass, {Array(kSums, layer)})](const PassTile& tile) {
      return tile.inputs[input];
    };
  } else {
    const bool stale = RHIZOME_MUTANT("sums are gathered again of the layer before") && layer > 1;
    AddGather(stale ? layer - 1 : layer, mode, pass);
    incoming.sums = [gather = pass.gathers.size() - 1](const PassTile& tile) {
      return tile.gathered[gather];
    };
  }
  incoming.raw = RawOf(layer, pass);
  return incoming;
}

/// Computes the gradients of the statistics of a layer's batch norms, from the last norm to the
/// first. Afterwards `incoming` reads the gradient of the layer's rows from scratch, unless it is
/// computed from the loss.
Status FullNetwork::BackwardNorms(std::uint32_t layer, Incoming& incoming, const Mode& mode,
                                  const PassUser& use) {
  std::vector<Norm>& norms = norms_[layer];
  if (incoming.gradient) {
    incoming.pass.outputs = {Array(kGradient, layer)};
    incoming.pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::AutoGradMode with_gradients(true);
      tile.outputs[0].copy_(incoming.gradient(tile, sums));
    };
    RHIZOME_RETURN_IF_ERROR(Use(incoming.pass, use));
  }
  incoming = FromArrays(layer, /*from_loss=*/!incoming.gradient);
  for (std::size_t i = norms.size(); i-- > 0;) {
    GraphPass& pass = incoming.pass;
    pass.name = fmt::format("norms {}", layer + 1);
    pass.sums = 2;
    pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::AutoGradMode with_gradients(true);
      const Work work = Compute(layer, mode, tile, incoming);
      const Objective wanted = Wanted(layer, mode, tile, incoming, work, sums);
      if (wanted.of.empty()) return;
      const auto gradients = GradientsOf(wanted.of, wanted.gradients,
                                         {work.norms.known[i].mean, work.norms.known[i].variance});
      for (std::size_t s = 0; s < 2; ++s)
        if (gradients[s].defined()) sums.Add(tile.group, s, gradients[s].to(torch::kFloat64));
    };
    RHIZOME_ASSIGN_OR_RETURN(const TileSums sums, use(pass));
    if (!sums.Sum(0).defined()) continue;  // the passes are only recorded
    norms[i].gradient = {sums.Sum(0).to(torch::kFloat32), sums.Sum(1).to(torch::kFloat32)};
  }
  incoming.pass.name = fmt::format("backward {}, rows", layer + 1);
  return Status::Ok();
}

Status FullNetwork::BackwardLayer(std::uint32_t layer, Incoming incoming, const Mode& mode,
                                  const PassUser& use) {
  if (At(layer).batch_norms() > 0)
    RHIZOME_RETURN_IF_ERROR(BackwardNorms(layer, incoming, mode, use));
  GraphPass& pass = incoming.pass;
  pass.sums = parameters_.size() + 1;
  pass.summed_bytes += SummedBytes(layer);
  pass.scores = sink_ != nullptr && !incoming.gradient;
  if (WantsSumsGradient(layer)) pass.outputs.push_back(Array(kSumsGradient, layer));
  if (WantsOwnGradient(layer)) pass.outputs.push_back(Array(kOwnGradient, layer));
  std::optional<std::size_t> prepared;
  if (Attends(layer)) prepared = InputOf(pass, {Array(kPrepared, layer)});
  pass.body = [&, prepared](PassTile& tile, TileSums& sums) {
    const torch::AutoGradMode with_gradients(true);
    const Work work = Compute(layer, mode, tile, incoming);
    const Objective wanted = Wanted(layer, mode, tile, incoming, work, sums);
    std::vector<torch::Tensor> of = ParametersOf(layer);
    const std::size_t parameters = of.size();
    if (WantsSumsGradient(layer)) of.push_back(work.sums);
    if (WantsOwnGradient(layer)) of.push_back(work.raw);
    std::vector<torch::Tensor> gradients(of.size());
    if (!wanted.of.empty()) gradients = GradientsOf(wanted.of, wanted.gradients, of);
    for (std::size_t i = 0; i < parameters; ++i)
      sums.Add(tile.group, first_parameter_[layer] + i, gradients[i]);
    std::size_t next = 0;
    if (WantsSumsGradient(layer)) {
      PutSumsGradient(layer, work, gradients[parameters],
                      prepared ? tile.inputs[*prepared] : torch::Tensor(), tile.outputs[next++]);
    }
    if (WantsOwnGradient(layer)) CopyTo(gradients[parameters + next], tile.outputs[next]);
  };
  return Use(pass, use);
}

/// Computes the gradients of the weights with which the first layer prepares the features.
Status FullNetwork::BackwardPrepared(const Mode& mode, const PassUser& use) {
  if (!At(0).prepares_gathered()) return Status::Ok();
  GraphPass pass = GradientPass(0, mode, "backward 1");
  const TileTensor raw = [input = InputOf(pass, RowsBefore(0))](const PassTile& tile) {
    return tile.inputs[input];
  };
  pass.body = [&](PassTile& tile, TileSums& sums) {
    const torch::AutoGradMode with_gradients(true);
    GradientAbove(0, mode, tile, nullptr, raw, sums);
  };
  return Use(pass, use);
}

}  // namespace internal
}  // namespace rhizome
