#pragma once

#include <cstdint>
#include <span>

#include "rhizome/cache/product_kernels.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

/// Rows of a tile, which one task takes: few enough that they stay in the L2 cache of its core from
/// one operation to the next. The bits of a row's products depend on the row and the weights alone.
inline constexpr std::int64_t kDenseRows = 256;

/// Weights [out, in] of products, float32, in the order in which product_kernels.h reads them. They
/// are packed once for many products; those of a device stay as they are.
class PackedWeight {
 public:
  PackedWeight() = default;
  explicit PackedWeight(const torch::Tensor& weight);

  std::int64_t out() const { return weight_.size(0); }
  std::int64_t in() const { return weight_.size(1); }
  const torch::Tensor& weight() const { return weight_; }
  const float* panels() const { return panels_.data_ptr<float>(); }

 private:
  torch::Tensor weight_;
  torch::Tensor panels_;  // undefined on a device
};

/// Computes x weight^T + bias on the calling thread, without a gradient: x [m, in], weight [out,
/// in], bias [out] or undefined -> [m, out], float32. What lies on a device is multiplied there, by
/// libtorch.
torch::Tensor Multiply(const torch::Tensor& x, const PackedWeight& weight,
                       const torch::Tensor& bias);

/// Does the same of rows in memory, and writes `count` rows to `out`, weight.out() floats apart.
void MultiplyRows(const ProductRows& rows, std::int64_t count, const PackedWeight& weight,
                  const torch::Tensor& bias, float* out);

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

/// A tile of a layer's rows, [first, first + count), as products read them: where they are, or as
/// floats in a copy that lives as long as the tile. The table is contiguous.
class ProductTile {
 public:
  ProductTile(const LayerRows& x, std::int64_t number);

  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }
  const ProductRows& rows() const { return rows_; }

 private:
  std::int64_t first_;
  std::int64_t count_;
  torch::Tensor floats_;
  ProductRows rows_;
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
  /// gradient [count, out].
  /// Threads: one for each group.
  void Add(std::size_t group, const float* gradient, const ProductRows& x, std::int64_t count);

  torch::Tensor Weight() const;  ///< [out, in]
  torch::Tensor Bias() const;    ///< [out]

 private:
  const std::int64_t tiles_;
  const std::int64_t groups_;
  torch::Tensor weight_;  // [groups, panels, in, kPanel]
  torch::Tensor bias_;    // [groups, out]
};

/// Returns a tile of kDenseRows rows of `dim` floats, with any content: one that this thread had
/// before, if nobody uses it any more. Memory of a tile's size goes back to the system when it is
/// freed, which then has to clear each page of the next tile. A thread keeps 4 MiB at most.
torch::Tensor AnyTile(std::int64_t dim);

inline std::int64_t DenseTiles(std::int64_t rows) { return (rows + kDenseRows - 1) / kDenseRows; }

}  // namespace rhizome::inline internal
