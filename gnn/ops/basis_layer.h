#pragma once

#include <cstdint>
#include <span>

#include "gnn/ops/activation.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/layer_graph.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Weights of a layer whose relations share basis matrices: the matrix of relation r is the sum
/// over b of coefficients[r, b] * bases[b].
struct BasisWeights {
  const torch::Tensor& self;          ///< [out, in]
  const torch::Tensor& bases;         ///< [bases, out, in]
  const torch::Tensor& coefficients;  ///< [relations, bases]
  const torch::Tensor& bias;          ///< [out]
};

/// Returns [self | bases 0 | bases 1 | ...], the weight of a target's row and of its sums by basis.
torch::Tensor JoinedWeight(const torch::Tensor& self, const torch::Tensor& bases);

/// Sums the rows of the groups of some targets by basis: out[t, b] = the sum over the groups g of
/// t, in order, of coefficients[relation of g, b] * rows[g]. Targets [first, first + count) of
/// `groups`; row 0 of `rows` belongs to their first group. `out` is [count, bases, columns], rows
/// of targets `stride` floats apart.
void SumByBasis(const float* rows, std::size_t columns, const GroupedLists& groups,
                std::size_t first, std::size_t count, const torch::Tensor& coefficients, float* out,
                std::size_t stride);

/// Computes a layer, with its gradients: x [sources, in] -> [targets, out],
///   activation(self x_t + the sum over groups g of t of (matrix of g's relation) mean_g + bias).
/// Since the matrices share bases, the rows of groups are summed by basis, and one product of a
/// target's row and its sums follows. A task processes a tile of kDenseRows targets; the rows of
/// groups and the sums are not stored, but computed again in the backward pass.
torch::Tensor BasisForward(const BasisWeights& weights, const LayerRows& x, const LayerGraph& graph,
                           const Activation& activation);

}  // namespace internal
}  // namespace rhizome
