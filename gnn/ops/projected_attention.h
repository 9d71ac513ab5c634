#pragma once

#include "gnn/ops/attention_ops.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// Attention over projected rows z = x W^T, with gradients, as a whole layer. Results are
// bit-identical to Linear, HeadDots and Attend in sequence. In the backward pass a task processes a
// tile of kDenseRows sources and adds the tile's gradient of z to the gradient of W while it is in
// the core's cache, so that the gradient of z is never stored for all sources.

/// Attend with the scores source_vectors . z_j and target_vectors . z_t: x [sources, in], weight
/// [heads * width, in], vectors [heads, width] -> [targets, heads * width]. The targets are the
/// first sources. `z` is freed after the forward pass; the backward pass recomputes it.
torch::Tensor AttendProjected(const LayerRows& x, const torch::Tensor& weight,
                              const torch::Tensor& source_vectors,
                              const torch::Tensor& target_vectors, const AggregateLists& lists,
                              const AttentionShape& shape);

/// AttendGatv2 for z = x W^T + bias. `z` is kept for the targets' part of the backward pass.
torch::Tensor AttendProjectedGatv2(const LayerRows& x, const torch::Tensor& weight,
                                   const torch::Tensor& bias, const torch::Tensor& query,
                                   const torch::Tensor& attention, const AggregateLists& lists,
                                   const AttentionShape& shape);

}  // namespace internal
}  // namespace rhizome
