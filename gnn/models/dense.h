#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>

namespace rhizome::inline internal {

/// Rows that are multiplied at once: enough for the full speed of one core, few enough that they
/// stay in its second-level cache from one operation to the next. Every multiplication has this
/// many rows, the last padded with zeros, so that a row's bits depend on nothing else.
inline constexpr std::int64_t kDenseRows = 256;

/// x weight^T + bias on the calling thread, without a gradient: x [m, in], weight [out, in], bias
/// [out] or undefined -> [m, out], float32.
///
/// By oneDNN, where this libtorch has its fused linear operation, else by libtorch's own product:
/// on processors of AMD the latter is MKL's, which reaches less than half of the speed there.
torch::Tensor Multiply(const torch::Tensor& x, const torch::Tensor& weight,
                       const torch::Tensor& bias);

/// Rows that a layer takes: row i is row place[i] of `table` [rows, dim], or row i where `place` is
/// empty. Ownership: `place` is borrowed and must outlive the backward pass.
struct LayerRows {
  torch::Tensor table;
  std::span<const std::uint32_t> place = {};

  std::int64_t size() const {
    return place.empty() ? table.size(0) : static_cast<std::int64_t>(place.size());
  }
  LayerRows First(std::int64_t count) const;

  /// Rows [first, first + count) as floats to `out`, `stride` floats apart.
  void Copy(std::int64_t first, std::int64_t count, float* out, std::size_t stride) const;
};

/// x weight^T with its gradient, on the compute threads: x [m, in], weight [out, in] -> [m, out].
/// The same bits for any number of threads.
torch::Tensor Linear(const LayerRows& x, const torch::Tensor& weight);

/// The gradients of weights over many rows: runs of rows go to `kMost` or fewer groups, which may
/// work at once, and the groups' sums are added in order. Which rows form a group depends on their
/// number alone.
class WeightGradient {
 public:
  static constexpr std::int64_t kMost = 32;

  /// Of a product of `rows` rows, [out, in].
  WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in);

  std::size_t groups() const { return static_cast<std::size_t>(groups_); }

  /// The tiles of kDenseRows rows that group `group` adds, in order: [first, last).
  std::int64_t FirstTile(std::size_t group) const;

  /// weight gradient += gradient^T x, bias gradient += the sum of gradient's rows; both operands of
  /// kDenseRows rows. Threads: one for each group.
  void Add(std::size_t group, const torch::Tensor& gradient, const torch::Tensor& x);

  torch::Tensor Weight() const;  ///< [out, in]
  torch::Tensor Bias() const;    ///< [out]

 private:
  const std::int64_t tiles_;
  const std::int64_t groups_;
  torch::Tensor weight_;  // [groups, out, in]
  torch::Tensor bias_;    // [groups, out]
};

/// Tile `tile` of x, kDenseRows rows of floats: where x ends sooner, or lies elsewhere, a copy,
/// with zeros behind the end.
torch::Tensor PaddedTile(const LayerRows& x, std::int64_t tile);

inline std::int64_t DenseTiles(std::int64_t rows) { return (rows + kDenseRows - 1) / kDenseRows; }

}  // namespace rhizome::inline internal
