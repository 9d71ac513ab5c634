#pragma once

#include <torch/torch.h>

#include "rhizome/gnn/conv_layer.h"

namespace rhizome::inline internal {

/// A layer that aggregates before it multiplies, with its gradients: x [sources, in] ->
/// [targets, out]. One task takes kDenseRows targets: their rows and their neighbours' sums are
/// brought together in a tile [self | sum] that stays in the core's cache while it is multiplied by
/// the weights of both and activated; the backward pass takes the same tiles in turn, and gathers
/// the gradient of each source through the turned lists in one write.
torch::Tensor FusedForward(const ConvLayer& layer, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation);

}  // namespace rhizome::inline internal
