#pragma once

#include "gnn/ops/activation.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/layer_graph.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Weights of a fused layer. `self` is undefined if the target's own row has no separate weight.
struct FusedWeights {
  const torch::Tensor& neighbor;  ///< [out, in]
  const torch::Tensor& self;      ///< [out, in]
  const torch::Tensor& bias;      ///< [out]
};

/// Computes a layer that aggregates before it multiplies, with its gradients: x [sources, in] ->
/// [targets, out]. A task processes a tile of kDenseRows targets: their own rows and the sums of
/// their neighbours form a matrix [self | sum] that remains in the core's cache while it is
/// multiplied by both weights and activated. The backward pass uses the same tiles, and computes
/// the gradient of each source over the transposed lists in one write.
/// If the graph is on a device, the matrix [self | sum] of all targets is computed and multiplied
/// there.
torch::Tensor FusedForward(const FusedWeights& weights, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation);

}  // namespace internal
}  // namespace rhizome
