#pragma once

#include <cstddef>

#include "cache/kernels/aggregate.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Number of groups of rows over which gradients of vectors are summed concurrently. The division
/// into groups depends only on the rows, so that the bits of the sum do, too.
inline constexpr std::size_t kVectorGroups = 32;

/// Returns values converted to float32 if gradients are recorded, else unchanged: kernels read rows
/// of half precision, but compute gradients only for float32.
torch::Tensor AsTrained(const torch::Tensor& values);

/// Returns z[r, h] . vectors[h], with gradients, on the compute threads: z [rows, heads * width],
/// vectors [heads, width] -> [rows, heads]. The bits are the same for any number of threads and for
/// every SimdPath. Tensors on a device are multiplied there, by libtorch.
torch::Tensor HeadDots(const torch::Tensor& z, const torch::Tensor& vectors);

/// Writes HeadDots of `rows` rows to `out` [rows, heads], on the calling thread. x.dim is heads *
/// width.
void HeadDotsOfRows(const RowsView& x, std::size_t rows, const torch::Tensor& vectors, float* out);

}  // namespace internal
}  // namespace rhizome
