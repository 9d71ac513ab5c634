#pragma once

#include <cstdint>

#include "cache/kernels/attention_kernels.h"
#include "gnn/ops/aggregate_ops.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// Attention as libtorch operations with gradients, on the compute threads, under the rules of
// aggregate_ops.h: results are bit-identical for any number of threads and for every SimdPath;
// lists are borrowed and must outlive the backward pass. No tensor has edges x columns elements:
// the forward pass keeps the maximum and denominator of each target and head, and the backward pass
// creates one tensor [edges, heads]. Over lists that are placed on a device, attention is computed
// there, with the same bits, except for gradients of additive-v2, which are only close.

struct AttentionShape {
  std::int64_t heads = 1;  ///< in [1, kMaxHeads]
  double slope = 0.2;      ///< of LeakyReLU, in [0, 1]
  /// Row t is the source of a first edge of target t (a self-loop).
  bool own = false;
  double dropout = 0;      ///< share of the weights that become zero, in [0, 1)
  std::uint64_t seed = 0;  ///< seed of the dropout
};

/// Returns for each target and head the sum of values[j], weighted by the softmax over the target's
/// edges of LeakyReLU(source[j] + query[t]): values [sources, heads * width], source [sources,
/// heads], query [targets, heads] -> [targets, heads * width], float32. A target without edges gets
/// zeros. `values` may be float32, float16 or bfloat16; the others are float32.
///
/// Source: GAT (Velickovic et al., ICLR 2018, equations 1 to 4), where the product of vector a with
/// two concatenated rows is split into the sum of one number per row.
torch::Tensor Attend(const torch::Tensor& values, const torch::Tensor& source,
                     const torch::Tensor& query, const AggregateLists& lists,
                     const AttentionShape& shape);

/// As Attend, with the scores attention[h] . LeakyReLU(values[j, h] + query[t, h]): query [targets,
/// heads * width], attention [heads, width].
///
/// Source: GATv2 (Brody et al., ICLR 2022, equation 7).
torch::Tensor AttendGatv2(const torch::Tensor& values, const torch::Tensor& query,
                          const torch::Tensor& attention, const AggregateLists& lists,
                          const AttentionShape& shape);

}  // namespace internal
}  // namespace rhizome
