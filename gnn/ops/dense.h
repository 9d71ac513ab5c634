#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "cache/kernels/product_kernels.h"
#include "gnn/ops/torch.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Rows of a tile, which one task processes. A tile is small enough to remain in the core's L2
/// cache from one operation to the next. The bits of a row's products depend only on the row and
/// the weights.
inline constexpr std::int64_t kDenseRows = 256;

/// Weights [out, in] of products, float32, packed into the order in which product_kernels.h reads
/// them, once for many products. Weights on a device are not packed.
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
/// in], bias [out] or undefined -> [m, out], float32. Tensors on a device are multiplied there, by
/// libtorch.
torch::Tensor Multiply(const torch::Tensor& x, const PackedWeight& weight,
                       const torch::Tensor& bias);

/// As Multiply for rows in memory. Writes `count` rows to `out`, weight.out() floats apart.
void MultiplyRows(const ProductRows& rows, std::int64_t count, const PackedWeight& weight,
                  const torch::Tensor& bias, float* out);

/// The rows that a layer reads: row i is row place[i] of `table` [rows, dim], or row i if `place`
/// is empty.
/// Ownership: `place` and `types` are borrowed and must outlive the backward pass.
struct LayerRows {
  torch::Tensor table;
  std::span<const std::uint32_t> place = {};

  /// Vertex type of each row, in layerwise inference of kinds with weights for each vertex type.
  std::span<const TypeId> types = {};

  std::int64_t size() const {
    return place.empty() ? table.size(0) : static_cast<std::int64_t>(place.size());
  }
  LayerRows First(std::int64_t count) const;

  /// Returns all rows as one dense float matrix; copies only if `place` is set or the type differs.
  /// Passes gradients on if `place` is empty.
  torch::Tensor Floats() const;

  /// Copies rows [first, first + count) as floats to `out`, `stride` floats apart.
  void Copy(std::int64_t first, std::int64_t count, float* out, std::size_t stride) const;
};

/// Tile `number` of a layer's rows, [first, first + count), in the form that products read: the
/// rows in place, or a float copy that lives as long as the tile. The table is contiguous.
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
/// [m, out]. The bits are the same for any number of threads. Tensors on a device are multiplied
/// there, by libtorch.
torch::Tensor Linear(const LayerRows& x, const torch::Tensor& weight);

/// Returns the sum over the first dimension of `groups` [groups, ...], added in order.
torch::Tensor SumOfGroups(const torch::Tensor& groups);

/// Sums the gradients of weights over many rows. Runs of rows form up to kMost groups, which may be
/// computed concurrently; the groups' sums are added in order. The division into groups depends
/// only on the number of rows.
class WeightGradient {
 public:
  static constexpr std::int64_t kMost = 32;

  /// For a product of `rows` rows with weights [out, in].
  WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in);

  std::size_t groups() const { return static_cast<std::size_t>(groups_); }

  /// Returns the first tile of a group. Group `group` must add the tiles [FirstTile(group),
  /// FirstTile(group + 1)) of kDenseRows rows, in order.
  std::int64_t FirstTile(std::size_t group) const;

  /// Adds gradient^T x to the weight gradient, and the sum of gradient's rows to the bias gradient.
  /// `gradient` is [count, out].
  /// Threads: one per group.
  void Add(std::size_t group, const float* gradient, const ProductRows& x, std::int64_t count);

  torch::Tensor Weight() const;  ///< [out, in]
  torch::Tensor Bias() const;    ///< [out]

 private:
  const std::int64_t tiles_;
  const std::int64_t groups_;
  torch::Tensor weight_;  // [groups, panels, in, kPanel]
  torch::Tensor bias_;    // [groups, out]
};

/// Returns a tile of kDenseRows rows of `dim` floats, with unspecified content. Reuses a tile of
/// this thread that is no longer referenced: freed memory of a tile's size is returned to the
/// system, which then has to clear each page of the next tile. A thread keeps up to 4 tiles of up
/// to 1 MiB.
torch::Tensor AnyTile(std::int64_t dim);

inline std::int64_t DenseTiles(std::int64_t rows) { return (rows + kDenseRows - 1) / kDenseRows; }

/// The rows of a tile: [first, first + count).
struct DenseTile {
  std::int64_t first;
  std::int64_t count;
};

/// Returns tile `number` of DenseTiles(rows).
inline DenseTile DenseTileAt(std::int64_t number, std::int64_t rows) {
  const std::int64_t first = number * kDenseRows;
  return {first, std::min(kDenseRows, rows - first)};
}

}  // namespace internal
}  // namespace rhizome
