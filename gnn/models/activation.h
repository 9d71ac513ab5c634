#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace rhizome::inline internal {

/// What follows a layer: ReLU, then dropout. What is dropped depends on the seed, a row's number
/// and a column's, and on nothing else.
struct Activation {
  bool relu = false;
  double dropout = 0;  ///< share of the values that become zero, in [0, 1)
  std::uint64_t seed = 0;
  bool none() const { return !relu && dropout == 0; }
};

/// Rows [0, count) of `in` -> those of `out`, which may be `in`, on the calling thread; both have
/// `dim` columns. The first is row `first_row` of the whole.
void ActivateRows(const Activation& activation, const float* in, std::int64_t count,
                  std::int64_t dim, std::int64_t first_row, float* out);

/// The gradient through it: of rows that became `result`. As above.
void ActivateGradientRows(const Activation& activation, const float* result, const float* gradient,
                          std::int64_t count, std::int64_t dim, std::int64_t first_row, float* out);

/// x [rows, dim] with its gradient, on the compute threads.
torch::Tensor Activate(const torch::Tensor& x, const Activation& activation);

}  // namespace rhizome::inline internal
