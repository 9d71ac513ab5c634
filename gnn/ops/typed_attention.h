#pragma once

#include <cstdint>

#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"
#include "gnn/ops/typed_graph.h"

namespace rhizome {
inline namespace internal {

/// Weights of attention by type.
struct TypedAttentionWeights {
  torch::Tensor key_value;       ///< [vertex types, 2 * heads * width, in]
  torch::Tensor key_value_bias;  ///< [vertex types, 2 * heads * width]
  torch::Tensor attention;       ///< [relations, heads, width, width]
  torch::Tensor message;         ///< [relations, heads, width, width]
};

/// Computes for each target the sum over its edges of message[r] V_j, weighted head by head by the
/// softmax over all its edges of the scores K_j . (attention[r] query), where r is the relation of
/// the edge, and K_j and V_j are the keys and values of source j by its vertex type: x [sources,
/// in], query [targets, heads * width] -> [targets, heads * width].
///
/// Has gradients, with respect to x if it has no `place`. Only the inputs and the result are kept
/// for the backward pass. Both passes have rows of sources and of groups of edges for some of the
/// heads at a time. Uses the compute threads; their number does not change a bit.
/// Ownership: `graph` must outlive the backward pass.
///
/// Source: HGT (Hu et al., WWW 2020, equations 2 to 4).
torch::Tensor AttendByType(const LayerRows& x, const torch::Tensor& query,
                           const TypedAttentionWeights& weights, const TypedGraph& graph);

/// Returns the number of columns for which AttendByType has rows of sources and groups at a time.
std::int64_t ColumnsTogether(std::int64_t heads, std::int64_t width);

}  // namespace internal
}  // namespace rhizome
