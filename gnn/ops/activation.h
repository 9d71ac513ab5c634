#pragma once

#include <cstdint>

#include "rhizome/cuda/device.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// The activation after a layer: ReLU, then dropout. Which values are dropped depends only on the
/// seed, the row's number and the column's number.
struct Activation {
  bool relu = false;
  double dropout = 0;  ///< share of the values that become zero, in [0, 1)
  std::uint64_t seed = 0;
  std::int64_t first_row = 0;  ///< number, in the whole matrix, of the first row that is activated
  Device* device = nullptr;    ///< that has the rows; null: they are the processor's
  bool none() const { return !relu && dropout == 0; }
};

/// Dropout as kernels take it: what draws are dropped, and the factor of what is kept.
struct DropoutDraws {
  std::uint32_t dropped = 0;  ///< the draws below it
  float scale = 1;
};
DropoutDraws DrawsOf(double dropout);

/// Activates rows [0, count) of `in` into `out`, which may be `in`, on the calling thread. Both
/// have `dim` columns. The first of them is row `first_row` of those that are activated.
void ActivateRows(const Activation& activation, const float* in, std::int64_t count,
                  std::int64_t dim, std::int64_t first_row, float* out);

/// Computes the gradient of rows whose activation gave `result`; otherwise as above.
void ActivateGradientRows(const Activation& activation, const float* result, const float* gradient,
                          std::int64_t count, std::int64_t dim, std::int64_t first_row, float* out);

/// The same of all rows of dense matrices by the kernels of a device, queued behind libtorch's work
/// there: the same bits. Errors are thrown (DeviceFailure).
torch::Tensor ActivateOnDevice(const Activation& activation, const torch::Tensor& in);
torch::Tensor ActivateGradientOnDevice(const Activation& activation, const torch::Tensor& result,
                                       const torch::Tensor& gradient);

/// Activates x [rows, dim], with its gradient, on the compute threads, or on the device that has x.
torch::Tensor Activate(const torch::Tensor& x, const Activation& activation);

/// at::elu, whose gradient is computed from the result: what it was computed from need not be kept.
torch::Tensor Elu(const torch::Tensor& x);

}  // namespace rhizome::inline internal
