#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>

namespace rhizome::inline internal {

/// Number of rows in one multiplication: enough for the full speed of one core, and few enough that
/// they stay in its L2 cache from one operation to the next. Every multiplication has exactly this
/// many rows, the last padded with zeros, so that the bits of a row depend on nothing else.
inline constexpr std::int64_t kDenseRows = 256;

/// Computes x weight^T + bias on the calling thread, without a gradient: x [m, in], weight [out,
/// in], bias [out] or undefined -> [m, out], float32.
///
/// It uses oneDNN if this libtorch has its fused linear operation, else libtorch's own product: on
/// AMD processors the latter is MKL's, which reaches less than half of the speed there. What lies
/// on a device is multiplied there, by libtorch's.
torch::Tensor Multiply(const torch::Tensor& x, const torch::Tensor& weight,
                       const torch::Tensor& bias);

/// The rows that a layer reads: row i is row place[i] of `table` [rows, dim], or row i if `place`
/// is empty.
/// Ownership: `place` is borrowed and must outlive the backward pass.
struct LayerRows {
  torch::Tensor table;
  std::span<const std::uint32_t> place = {};

  std::int64_t size() const {
    return place.empty() ? table.size(0) : static_cast<std::int64_t>(place.size());
  }
  LayerRows First(std::int64_t count) const;

  /// Returns all rows as one dense matrix of floats; a copy only if they are at other places or of
  /// another type. It passes gradients on where `place` is empty.
  torch::Tensor Floats() const;

  /// Copies rows [first, first + count) as floats to `out`, `stride` floats apart.
  void Copy(std::int64_t first, std::int64_t count, float* out, std::size_t stride) const;
};

/// Computes x weight^T with its gradient, on the compute threads: x [m, in], weight [out, in] ->
/// [m, out]. The bits are the same for any number of threads. What lies on a device is multiplied
/// there, by libtorch.
torch::Tensor Linear(const LayerRows& x, const torch::Tensor& weight);

/// Returns the sum of groups [groups, ...], added in order.
torch::Tensor SumOfGroups(const torch::Tensor& groups);

/// Sums the gradients of weights over many rows. Runs of rows form at most `kMost` groups, which
/// may be computed at once; the groups' sums are added in order. The division into groups depends
/// on the number of rows alone.
class WeightGradient {
 public:
  static constexpr std::int64_t kMost = 32;

  /// For a product of `rows` rows with weights [out, in].
  WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in);

  std::size_t groups() const { return static_cast<std::size_t>(groups_); }

  /// Group `group` adds the tiles [FirstTile(group), FirstTile(group + 1)) of kDenseRows rows, in
  /// order.
  std::int64_t FirstTile(std::size_t group) const;

  /// Adds gradient^T x to the weight gradient, and the sum of gradient's rows to the bias gradient;
  /// both operands have kDenseRows rows.
  /// Threads: one for each group.
  void Add(std::size_t group, const torch::Tensor& gradient, const torch::Tensor& x);

  torch::Tensor Weight() const;  ///< [out, in]
  torch::Tensor Bias() const;    ///< [out]

 private:
  const std::int64_t tiles_;
  const std::int64_t groups_;
  torch::Tensor weight_;  // [groups, out, in]
  torch::Tensor bias_;    // [groups, out]
};

/// Returns a tile of kDenseRows rows of `dim` floats, with any content: one that this thread had
/// before, if nobody uses it any more. Memory of a tile's size goes back to the system when it is
/// freed, which then has to clear each page of the next tile. A thread keeps 4 MiB at most.
torch::Tensor AnyTile(std::int64_t dim);

/// Returns tile `tile` of x: kDenseRows rows of floats. It is a copy, padded with zeros, if x ends
/// within the tile, is not float32 or has `place`.
torch::Tensor PaddedTile(const LayerRows& x, std::int64_t tile);

inline std::int64_t DenseTiles(std::int64_t rows) { return (rows + kDenseRows - 1) / kDenseRows; }

}  // namespace rhizome::inline internal
