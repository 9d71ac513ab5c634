#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kernels/product_kernels.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Numbers of rows, sorted by class (a vertex type, or a relation). Products of rows with a matrix
/// for each class are then products of runs of rows.
struct RowsByClass {
  std::vector<std::uint32_t> begin = {0};  ///< [classes + 1]; class c has rows[begin[c]..]
  std::vector<std::uint32_t> rows = {};    ///< ascending within a class

  /// Sorts rows [0, class_of.size()).
  static RowsByClass Of(std::span<const std::uint16_t> class_of, std::size_t classes);

  std::int64_t classes() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
};

/// The blocks of a block-diagonal matrix, all of the same size, packed for many products.
using PackedBlocks = std::vector<PackedWeight>;

/// Packs the blocks of `weight` [blocks, out / blocks, in / blocks]. `turned`: transposed.
PackedBlocks PackBlocks(const torch::Tensor& weight, bool turned = false);

/// A block-diagonal matrix for each class (a vertex type, or a relation), packed.
class PackedClasses {
 public:
  PackedClasses() = default;

  /// `weight`: [classes, blocks, out / blocks, in / blocks]. `bias` [classes, out], or without
  /// elements.
  explicit PackedClasses(const torch::Tensor& weight, const torch::Tensor& bias = {});

  /// Packs only the matrices of classes that have rows. `turned`: transposed.
  PackedClasses(const torch::Tensor& weight, const RowsByClass& classes, bool turned);

  std::int64_t classes() const { return static_cast<std::int64_t>(matrices_.size()); }
  const PackedBlocks& MatrixOf(std::size_t of_class) const { return matrices_[of_class]; }

  /// Returns the bias of a class, or null.
  const float* BiasOf(std::size_t of_class) const;

  /// Returns the number of columns of a product.
  std::int64_t out() const { return out_; }

 private:
  std::vector<PackedBlocks> matrices_;  // [classes]
  torch::Tensor bias_;                  // undefined: none
  std::int64_t out_ = 0;
};

/// Multiplies `count` rows by a block-diagonal matrix on the calling thread: -> out [count, outputs
/// of all blocks]. `bias` [outputs], or null. The bits of a row depend only on that row.
void MultiplyBlocks(const ProductRows& rows, std::size_t count,
                    std::span<const PackedWeight> blocks, const float* bias, float* out);

}  // namespace internal
}  // namespace rhizome
