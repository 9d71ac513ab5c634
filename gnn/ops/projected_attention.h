#pragma once

#include "rhizome/gnn/attention_ops.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

// Attention over rows z = x W^T, with gradients, as a whole layer: the same bits as Linear,
// HeadDots and Attend one after the other. In the backward pass one task takes a tile of kDenseRows
// sources, whose gradient of z goes into that of W while it is in the core's cache, so that no
// gradient of all sources' z is ever there.

/// Attend with the scores source_vectors . z_j and target_vectors . z_t: x [sources, in], weight
/// [heads * width, in], vectors [heads, width] -> [targets, heads * width]. Targets are the first
/// sources. `z` itself lives no longer than the forward pass: the backward pass multiplies again.
torch::Tensor AttendProjected(const LayerRows& x, const torch::Tensor& weight,
                              const torch::Tensor& source_vectors,
                              const torch::Tensor& target_vectors, const AggregateLists& lists,
                              const AttentionShape& shape);

/// AttendV2 for z = x W^T + bias, which is kept for the targets' part of the backward pass.
torch::Tensor AttendProjectedV2(const LayerRows& x, const torch::Tensor& weight,
                                const torch::Tensor& bias, const torch::Tensor& query,
                                const torch::Tensor& attention, const AggregateLists& lists,
                                const AttentionShape& shape);

}  // namespace rhizome::inline internal
