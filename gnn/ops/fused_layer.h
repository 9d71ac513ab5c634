#pragma once

#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/layer_graph.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// The weights of a fused layer; `self` is undefined where own rows have none.
struct FusedWeights {
  const torch::Tensor& neighbor;  ///< [out, in]
  const torch::Tensor& self;      ///< [out, in]
  const torch::Tensor& bias;      ///< [out]
};

/// Computes a layer that aggregates before it multiplies, with its gradients: x [sources, in] ->
/// [targets, out]. One task takes a tile of kDenseRows targets: their own rows and their
/// neighbours' sums form a matrix [self | sum] that stays in the core's cache while it is
/// multiplied by the weights of both and activated. The backward pass takes the same tiles, and
/// gathers the gradient of each source over the transposed lists in one write.
/// Where the graph is on a device, the matrix [self | sum] of all targets is made and multiplied
/// there.
torch::Tensor FusedForward(const FusedWeights& weights, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation);

}  // namespace rhizome::inline internal
