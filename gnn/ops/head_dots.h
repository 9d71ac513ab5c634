#pragma once

#include <cstddef>

#include "rhizome/cache/aggregate.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// Groups of rows whose gradients of a vector are summed at once. The division into groups depends
/// on the rows alone, so that the bits of the sum do too.
inline constexpr std::size_t kVectorGroups = 32;

/// Returns values as floats where gradients may be wanted, else as they are: kernels read rows of
/// half precision, but have gradients for floats alone.
torch::Tensor AsTrained(const torch::Tensor& values);

/// Returns z[r, h] . vectors[h], with gradients, on the compute threads: z [rows, heads * width],
/// vectors [heads, width] -> [rows, heads]. The bits are the same for any number of threads and for
/// every SimdPath. What lies on a device is multiplied there, by libtorch.
torch::Tensor HeadDots(const torch::Tensor& z, const torch::Tensor& vectors);

/// Writes HeadDots of some rows, [rows of x, heads], on the calling thread. x.dim is heads * width.
void HeadDotsOfRows(const RowsView& x, std::size_t rows, const torch::Tensor& vectors, float* out);

}  // namespace rhizome::inline internal
