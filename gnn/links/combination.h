#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kernels/product_kernels.h"

namespace rhizome {
inline namespace internal {

/// How a query q and a row x of `dim` columns are combined into a score. Complex rows have their
/// real parts in the first half of the columns and their imaginary parts in the second.
enum class Combination : std::uint8_t {
  kDot,      ///< sum of q_i x_i
  kL1,       ///< -sum of |q_i - x_i|
  kL2,       ///< -sqrt(sum of (q_i - x_i)^2)
  kModulus,  ///< -sum of the moduli of the complex numbers q_i - x_i; `dim` is even
};

/// Returns the score of one query and one row.
float Combine(Combination by, std::size_t dim, const float* query, const float* row);

/// Adds the gradient of a loss to the gradients of a query and of a row; `gradient` is the
/// derivative of the loss by the score. Where a distance has no derivative (a difference of 0), its
/// derivative counts as 0. A null pointer is not written.
void AddCombineGradient(Combination by, std::size_t dim, const float* query, const float* row,
                        float gradient, float* query_gradient, float* row_gradient);

/// Queries in the layout that the kernels read. The bits of a score depend only on its query and
/// its row, not on the other queries, the rows of the call, or the processor. They may differ in
/// rounding from Combine, which adds in another order.
/// Memory: `dim` floats a query, rounded up to 16 queries.
class PackedQueries {
 public:
  /// `queries` has shape [count, dim].
  PackedQueries(Combination by, std::size_t dim, std::span<const float> queries);

  std::size_t count() const { return count_; }

  /// Writes the scores of rows [0, rows) to `out`, [rows, count()], with `stride` floats from a row
  /// to the next.
  void Score(const ProductRows& rows, std::size_t count, float* out, std::size_t stride) const;

 private:
  Combination by_;
  std::size_t dim_;
  std::size_t count_;
  std::vector<float> panels_;  // [PanelsOf(count_), dim_, kPanel]
};

}  // namespace internal
}  // namespace rhizome
