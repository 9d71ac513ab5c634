#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// The activation after a layer: ReLU, then dropout. The dropped values depend only on the seed and
/// on the numbers of row and column.
struct Activation {
  bool relu = false;
  double dropout = 0;  ///< share of the values that become zero, in [0, 1)
  std::uint64_t seed = 0;
  std::int64_t first_row = 0;  ///< number of the first activated row in the whole matrix
  Device* device = nullptr;    ///< the device that holds the rows; null: the CPU
  bool none() const { return !relu && dropout == 0; }
};

/// Dropout as the kernels receive it: which draws are dropped, and the scale of the kept values.
struct DropoutDraws {
  std::uint32_t dropped = 0;  ///< draws below it are dropped
  float scale = 1;
};
DropoutDraws DrawsOf(double dropout);

/// Activates rows [0, count) of `in` into `out`, which may be the same array, on the calling
/// thread. Both have `dim` columns. The first of these rows is row `first_row` of all activated
/// rows.
void ActivateRows(const Activation& activation, const float* in, std::int64_t count,
                  std::int64_t dim, std::int64_t first_row, float* out);

/// Computes the gradient of rows for which the activation returned `result`; otherwise as above.
void ActivateGradientRows(const Activation& activation, const float* result, const float* gradient,
                          std::int64_t count, std::int64_t dim, std::int64_t first_row, float* out);

/// As above for all rows of dense matrices, by device kernels that are queued behind libtorch's
/// work; results are bit-identical. Errors are thrown (DeviceFailure).
torch::Tensor ActivateOnDevice(const Activation& activation, const torch::Tensor& in);
torch::Tensor ActivateGradientOnDevice(const Activation& activation, const torch::Tensor& result,
                                       const torch::Tensor& gradient);

/// Activates x [rows, dim], with its gradient, on the compute threads or on the device that holds
/// x.
torch::Tensor Activate(const torch::Tensor& x, const Activation& activation);

/// at::elu with a gradient that is computed from the result, so that the input need not be kept.
torch::Tensor Elu(const torch::Tensor& x);

}  // namespace internal
}  // namespace rhizome
