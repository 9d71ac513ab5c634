#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gnn/ops/block_products.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// The row of x that each row of a product is computed from, if they are not the same rows.
struct ProductSource {
  std::span<const std::uint32_t> row = {};  ///< [rows of the product]; empty: the same numbers
};

/// Each row of a product is computed from the row of x with the same number.
inline const ProductSource kSameRows;

/// Computes row i of the product, which has class c, as weight[c] x[i] + bias[c]: x [rows, in],
/// weight [classes, blocks, out / blocks, in / blocks], bias [classes, out] or undefined ->
/// [classes.size(), out]. A matrix is block-diagonal. Has gradients, with respect to x if it has no
/// `place`. A row's bits depend only on that row. Uses the compute threads.
/// Ownership: `classes` must outlive the backward pass.
torch::Tensor ClassProducts(const LayerRows& x, const RowsByClass& classes,
                            const torch::Tensor& weight, const torch::Tensor& bias);

/// Computes the same on the calling thread, without gradients, row i from x[source.row[i]]: -> out
/// [classes.size(), out]. x is float32 and contiguous.
void MultiplyByClass(const LayerRows& x, const RowsByClass& classes, const PackedClasses& weight,
                     float* out, const ProductSource& source = kSameRows);

/// Computes the same on the compute threads, in another order: row i of `out` is the product with
/// number classes.rows[i].
void MultiplySorted(const LayerRows& x, const RowsByClass& classes, const PackedClasses& weight,
                    float* out, const ProductSource& source = kSameRows);

}  // namespace internal
}  // namespace rhizome
