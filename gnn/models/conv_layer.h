#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/aggregate_ops.h"
#include "rhizome/gnn/dense.h"
#include "rhizome/gnn/model_spec.h"

namespace rhizome::inline internal {

/// The edges of one message-passing layer, from `sources` local rows to the first `targets` of
/// them, with the factors of this kind of layer.
/// Ownership: borrows the lists; must outlive the backward pass of what was computed with it.
struct LayerGraph {
  AggregateLists lists;
  std::vector<float> target_scale;  ///< [targets]
  std::vector<float> source_scale;  ///< [sources], or empty: ones
  std::vector<float> self_scale;    ///< [targets], GCN only: weight of a vertex's own row
  std::int64_t sources() const { return lists.sources(); }
  std::int64_t targets() const { return lists.targets(); }
};

/// Builds the factors. SAGE takes the mean of the listed neighbours. GCN normalises symmetrically
/// with self-loops: 1/sqrt((d_i + 1)(d_j + 1)) with the degrees in the whole graph (`degrees`,
/// [sources]; unused by SAGE). If only some neighbours were sampled, their sum is scaled by
/// degree/sampled, so that its expectation is that of the full list.
LayerGraph MakeLayerGraph(ModelKind kind, const CsrView& csr,
                          std::span<const std::uint32_t> degrees, std::int64_t sources);

/// Returns 1/sqrt(degree + 1), GCN's factor for one end of an edge.
float GcnScale(std::uint32_t degree);

/// One message-passing layer.
///   SAGE: out = self W_self^T + mean(neighbours) W_neighbor^T + bias
///   GCN:  out = (self_scale * self + scaled sum of neighbours) W_neighbor^T + bias
/// Source: Hamilton et al., GraphSAGE (NIPS 2017); Kipf and Welling, GCN (ICLR 2017).
/// Threads: const functions may run on many threads at once, Forward excepted, which takes the
/// compute threads (compute_threads.h); its bits are the same for any number of them.
struct ConvLayer {
  ModelKind kind = ModelKind::kSage;
  torch::Tensor neighbor_weight;  ///< [out, in]
  torch::Tensor self_weight;      ///< [out, in]; undefined for GCN
  torch::Tensor bias;             ///< [out]

  /// Computes x [sources, in] -> [targets, out], through `activation`; x may have `place` if no
  /// gradient of it is wanted. Multiplies before it aggregates if that is cheaper; otherwise a tile
  /// of targets is aggregated, multiplied and activated while it is in the cache of one core.
  torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph,
                        const Activation& activation) const;

  /// Returns the matrix that a tile of inputs is multiplied by, [out, width]: inputs of SAGE are
  /// [self | neighbours], those of GCN their sum.
  torch::Tensor TileWeight() const;
};

}  // namespace rhizome::inline internal
