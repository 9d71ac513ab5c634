#pragma once

#include <cstdint>
#include <memory>

#include "gnn/link_train/link_job.h"
#include "gnn/models/model.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

// The decoder mlp in training: two layers over both rows of a pair, relu between them. Each edge
// has negatives of its own.

/// Returns the first weights: layers.0 [dim, 2 dim] and layers.1 [1, dim], Glorot uniform, with
/// biases of 0.
std::map<std::string, torch::Tensor> FirstPairWeights(std::int64_t dim, std::uint64_t seed);

/// Returns the mean loss of the edges of a minibatch and both of their sides, differentiable by the
/// rows [seeds, dim] and the decoder's weights. The negatives of an edge are those at its position
/// among the edges whose replaced end has the same type. If there are fewer negatives, as in a
/// validation set, they are used in turn. `mask`: negatives that do not count; null: none.
torch::Tensor PairLoss(const LinkJob& job, const Model& model, const torch::Tensor& rows,
                       const Minibatch& minibatch, const NegativeMask* mask);

/// Memory of PairLoss in bytes.
std::uint64_t PairLossBytes(const LinkJob& job, const Minibatch& minibatch);

/// Returns the decoder with the current weights.
std::unique_ptr<PairDecoder> PairDecoderOf(const LinkJob& job, const Model& model);

}  // namespace internal
}  // namespace rhizome
