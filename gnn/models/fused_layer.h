#pragma once

#include <torch/torch.h>

#include "rhizome/gnn/conv_layer.h"

namespace rhizome::inline internal {

/// Computes a layer that aggregates before it multiplies, with its gradients: x [sources, in] ->
/// [targets, out]. One task takes a tile of kDenseRows targets: their own rows and their
/// neighbours' sums form a matrix [self | sum] that stays in the core's cache while it is
/// multiplied by the weights of both and activated. The backward pass takes the same tiles, and
/// gathers the gradient of each source over the transposed lists in one write.
torch::Tensor FusedForward(const ConvLayer& layer, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation);

}  // namespace rhizome::inline internal
